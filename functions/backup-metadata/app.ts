// Backs up images to the backup target, records their deletion there, and restores missing images of the cluster.
import type { Hono } from 'hono';
import type { BackupDeps } from '#shared/backup/settings.ts';
import { handleBackupEvent } from '#shared/backup/handle.ts';
import { eventFunction } from '#shared/runtime/event-function.ts';

export const createApp = (deps: BackupDeps): Hono =>
  eventFunction({
    name: 'backup-metadata',
    log: deps.log,
    handle: (event, { signal }) => handleBackupEvent(deps, event, signal),
  });
