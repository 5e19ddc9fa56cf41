// Ties informers and a work queue into one level-triggered controller.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import { createInformer, type Informer } from '#local-cluster/controllers/informer.ts';
import { createWorkQueue, type WorkQueue } from '#local-cluster/controllers/work-queue.ts';

/** Where controllers tell of trouble: a constant message and fields. */
export type Report = (message: string, fields: Readonly<Record<string, unknown>>) => void;

/** What every controller is given. */
export interface ControllerContext {
  readonly kube: KubeClient;
  readonly report: Report;
}

export interface Controller {
  /** Resolves when its first lists are in and work has begun. */
  readonly ready: Promise<void>;
  /** Resolves when nothing of it runs any more. */
  stop(): Promise<void>;
}

export interface ControllerOptions extends ControllerContext {
  readonly name: string;
  /** Brings one key to its desired state; safe to repeat. Resolves with milliseconds until it is due again, if it is. */
  readonly reconcile: (key: string) => Promise<number | undefined>;
  readonly concurrency?: number;
}

export interface ControllerParts {
  readonly queue: WorkQueue;
  /** Follows a kind; `keysOf` names the keys a change concerns. */
  readonly watch: <T extends KubeObject>(
    type: ResourceType<T>,
    keysOf: (object: T, removed: boolean) => readonly string[],
    resyncMs?: number,
  ) => Informer<T>;
}

/** Starts a controller; `wire` sets up what it follows. Keys are worked on only once everything it follows is known. */
export const startController = (options: ControllerOptions, wire: (parts: ControllerParts) => void): Controller => {
  const { kube, name, report } = options;
  const stopping = new AbortController();
  const informers: Informer<KubeObject>[] = [];
  const early = new Set<string>();
  let open = false;

  const queue = createWorkQueue({
    work: options.reconcile,
    ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    onFailure: (key, error) => {
      // Losing a race is daily business: the next pass sees the newer object, or none.
      if (!isConflict(error) && !isNotFound(error))
        report('reconcile failed', { controller: name, key, error: messageOf(error) });
    },
  });
  const add = (key: string): void => {
    if (open) queue.add(key);
    else early.add(key);
  };

  wire({
    queue: { ...queue, add },
    watch: (type, keysOf, resyncMs) => {
      const informer = createInformer({
        kube,
        type,
        signal: stopping.signal,
        ...(resyncMs === undefined ? {} : { resyncMs }),
        onChange: (object, removed) => keysOf(object, removed).forEach(add),
      });
      informers.push(informer);
      return informer;
    },
  });

  const ready = Promise.all(informers.map((informer) => informer.synced)).then(() => {
    open = true;
    early.forEach((key) => queue.add(key));
  });
  return {
    ready,
    stop: async () => {
      stopping.abort();
      await queue.stop();
      await Promise.all(informers.map((informer) => informer.finished));
    },
  };
};
