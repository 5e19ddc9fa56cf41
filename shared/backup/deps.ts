// Dependencies of the backup function.
import type { Send } from '#events/sender.ts';
import type { BackendRegistry } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { OpenTarget } from '#shared/backup/open.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import type { Logger } from '#shared/runtime/log.ts';

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
