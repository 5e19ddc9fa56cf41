// The configuration of backup-metadata, and the dependencies created from it.
import { z } from 'zod';
import type { Send } from '#events/sender.ts';
import { type BackendRegistry, backends } from '#shared/backends/registry.ts';
import { createOpenTarget, type OpenTarget, targetName } from './open.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createLateKubeClient, type LateKubeClient } from '#shared/clients/kube/late.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { toProxies } from '#shared/resources/network-settings.ts';
import { createSinkSender, type Reach, reconcileSettings } from '#shared/resources/settings.ts';
import { toPopulateSettings } from '#shared/resources/step-settings.ts';
import { setting, wholeNumber } from '#shared/runtime/config.ts';
import type { Logger } from '#shared/runtime/log.ts';

// Dependencies of the backup function.

export interface BackupDeps {
  readonly kube: KubeClient;
  readonly backends: BackendRegistry;
  readonly settings: PopulateSettings;
  /** Connects to a target. */
  readonly open: OpenTarget;
  /** Secret with credentials of the target in each namespace that has images to back up. */
  readonly secretName: string;
  /** Seconds until a failed backup is retried. */
  readonly retrySeconds: number;
  /** Seconds without a heartbeat after which a cluster that shares a target is considered lost. */
  readonly lostSeconds: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Logger;
  /** Default: no events are sent. */
  readonly send?: Send | undefined;
}

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

type BackupConfig = z.output<z.ZodObject<typeof backupSettings>>;

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
    clouds: config.cloudEndpoints,
    nfsFolder: config.backupNfsFolder,
  }),
  secretName: config.backupSecret,
  retrySeconds: config.backupRetrySeconds,
  lostSeconds: config.backupLostHours * 3600,
  now: Date.now,
  log,
});
