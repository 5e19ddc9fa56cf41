// Reconciles many objects of one kind, several concurrently. Called by the sweep, and when many objects wait for one.
import { type KubeObject, refOf } from '#shared/api/object.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { AppError, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, retry, worstOf } from '#shared/runtime/outcome.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

/** Objects reconciled concurrently. */
const width = 8;

export interface EachOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called for each object that is not settled, before it is reconciled. */
  readonly onUnsettled?: ((reconciler: Reconciler, object: KubeObject) => void) | undefined;
}

/** Reconciles all `objects` that are not settled; returns the worst outcome. A kind without a CRD has no objects. */
export const reconcileEach = async (
  deps: ReconcileDeps,
  reconciler: Reconciler,
  objects: AsyncIterable<KubeObject>,
  { signal, onUnsettled }: EachOptions = {},
): Promise<Outcome> => {
  const reconciling = new Set<Promise<unknown>>();
  const outcomes: Outcome[] = [];
  try {
    for await (const object of objects) {
      if (signal?.aborted === true) break;
      if (reconciler.isSettled(reconciler.read(object), deps.now())) continue;
      onUnsettled?.(reconciler, object);
      const work = reconcileQuietly(deps, object)
        .then((outcome) => outcomes.push(outcome))
        .finally(() => reconciling.delete(work));
      reconciling.add(work);
      if (reconciling.size >= width) await Promise.race(reconciling);
    }
  } catch (error) {
    if (!isNotFound(error)) throw error;
  } finally {
    await Promise.all(reconciling);
  }
  deps.log.debug('reconciled', {
    kind: reconciler.kind.type.kind,
    group: reconciler.kind.type.group,
    count: outcomes.length,
  });
  return worstOf(outcomes);
};

/** A failure of one object must not prevent the reconciliation of the others. */
const reconcileQuietly = async (deps: ReconcileDeps, object: KubeObject): Promise<Outcome> => {
  try {
    return await reconcile(deps, refOf(object));
  } catch (error) {
    const isExpected = error instanceof AppError;
    deps.log[isExpected ? 'warn' : 'error']('object not reconciled', {
      object: `${object.metadata.namespace ?? ''}/${object.metadata.name}`,
      error: isExpected ? messageOf(error) : error,
    });
    return retry(0, messageOf(error));
  }
};
