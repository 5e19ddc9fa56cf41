// What the backup function works with.
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
  /** Seconds until a backup that failed is retried. */
  readonly retrySeconds: number;
  /** Seconds of silence after which a cluster that shares a target counts as lost. */
  readonly lostSeconds: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Logger;
  /** Left out: nobody is told. */
  readonly send?: Send | undefined;
}
