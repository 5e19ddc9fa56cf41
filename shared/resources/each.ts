// Drives many objects of one kind, some at a time. Called by the sweep, and where many wait for one.
import { type KubeObject, refOf } from '#shared/api/object.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { AppError, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, retry, worstOf } from '#shared/runtime/outcome.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

/** Objects reconciled at once. */
const width = 8;

/** Everything among `objects` that is not settled; gives the worst of what came of it. A kind whose CRD is not installed has no objects. */
export const reconcileEach = async (
  deps: ReconcileDeps,
  reconciler: Reconciler,
  objects: AsyncIterable<KubeObject>,
  signal?: AbortSignal,
): Promise<Outcome> => {
  const reconciling = new Set<Promise<unknown>>();
  const outcomes: Outcome[] = [];
  try {
    for await (const object of objects) {
      if (signal?.aborted === true) break;
      if (reconciler.isSettled(reconciler.read(object))) continue;
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

/** One object in trouble must not keep the others from being reconciled. */
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
