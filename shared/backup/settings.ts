// The configuration of backup-metadata, and the dependencies created from it.
import { z } from 'zod';
import { backends } from '#shared/backends/registry.ts';
import type { BackupDeps } from '#shared/backup/deps.ts';
import { createOpenTarget, targetName } from '#shared/backup/open.ts';
import { createLateKubeClient, type LateKubeClient } from '#shared/clients/kube/late.ts';
import { toProxies } from '#shared/resources/proxy-settings.ts';
import { type Reach, createSinkSender, reconcileSettings } from '#shared/resources/settings.ts';
import { toPopulateSettings } from '#shared/resources/step-settings.ts';
import { setting, wholeNumber } from '#shared/runtime/config.ts';
import type { Logger } from '#shared/runtime/log.ts';

export const backupSettings = {
  ...reconcileSettings,
  backupSecret: setting(
    'BACKUP_SECRET',
    'Name of the Secret with the credentials of the backup target, in each namespace with images to back up or restore.',
    z.string().min(1).default(targetName),
  ),
  backupRetrySeconds: setting(
    'BACKUP_RETRY_SECONDS',
    'Seconds until a backup whose attempts all failed is retried.',
    wholeNumber(1).default(600),
  ),
  backupLostHours: setting(
    'BACKUP_LOST_HOURS',
    'Hours without a heartbeat after which a cluster that shares the backup target is considered lost: images restored from it are then removed from the target when they are deleted here.',
    wholeNumber(2).default(7 * 24),
  ),
  backupNfsFolder: setting(
    'BACKUP_NFS_FOLDER',
    'Folder with NFS exports that are backup targets, mounted as <folder>/<server>/<path>. Default: such targets are rejected.',
    z.string().min(1).optional(),
  ),
} as const;

export type BackupConfig = z.output<z.ZodObject<typeof backupSettings>>;

export const createBackupDeps = (
  config: BackupConfig,
  log: Logger,
  { connect, post }: Reach = {},
): BackupDeps & { readonly kube: LateKubeClient } => ({
  kube: createLateKubeClient(config.kubeconfig, connect),
  send: createSinkSender(config, post),
  backends,
  settings: toPopulateSettings(config),
  open: createOpenTarget({
    allowedAddresses: config.allowedAddresses,
    proxies: toProxies(config),
    nfsFolder: config.backupNfsFolder,
  }),
  secretName: config.backupSecret,
  retrySeconds: config.backupRetrySeconds,
  lostSeconds: config.backupLostHours * 3600,
  now: Date.now,
  log,
});
