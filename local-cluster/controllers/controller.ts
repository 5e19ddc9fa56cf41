// Combines informers and a work queue into one level-triggered controller.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import { createInformer, type Informer } from '#local-cluster/controllers/informer.ts';
import { createWorkQueue, type WorkQueue } from '#local-cluster/controllers/work-queue.ts';

/** Receives errors of controllers: a constant message and fields. */
export type Report = (message: string, fields: Readonly<Record<string, unknown>>) => void;

/** The common input of all controllers. */
export interface ControllerContext {
  readonly kube: KubeClient;
  readonly report: Report;
}

export interface Controller {
  /** Resolves when its first lists are complete and it has started to reconcile. */
  readonly ready: Promise<void>;
  /** Resolves when none of its work is running any more. */
  stop(): Promise<void>;
}

export interface ControllerOptions extends ControllerContext {
  readonly name: string;
  /** Reconciles one key; idempotent. Resolves with milliseconds until it is due again, if it is. */
  readonly reconcile: (key: string) => Promise<number | undefined>;
  readonly concurrency?: number;
}

export interface ControllerParts {
  readonly queue: WorkQueue;
  /** Watches a kind; `keysOf` returns the keys that a change affects. */
  readonly watch: <T extends KubeObject>(
    type: ResourceType<T>,
    keysOf: (object: T, removed: boolean) => readonly string[],
    resyncMs?: number,
  ) => Informer<T>;
}

/** Starts a controller; `wire` sets up its watches. Keys are reconciled only once all of its lists are complete. */
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
      // Conflicts are normal: the next pass reads the newer object, or none.
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
