// Drives everything that is not settled: what repairs lost events and enforces deadlines. Called by cron-tick.
import type { KubeObject } from '#shared/api/object.ts';
import type { ReconcileDeps } from '#shared/resources/reconcile.ts';
import { reconcileEach } from '#shared/resources/each.ts';
import { reconcilers } from '#shared/resources/registry.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';

/** Told of every object that a sweep comes across. */
export type Visit = (object: KubeObject) => void;

/** Nobody is asked to deliver a tick again: the next one comes by itself. */
export const sweep = async (deps: ReconcileDeps, signal?: AbortSignal, visit: Visit = () => {}): Promise<Outcome> => {
  for (const reconciler of reconcilers) {
    // oxlint-disable-next-line no-await-in-loop
    await reconcileEach(deps, reconciler, visited(deps.kube.listAll(reconciler.kind.type), visit), signal);
  }
  return done;
};

async function* visited(objects: AsyncIterable<KubeObject>, visit: Visit): AsyncIterable<KubeObject> {
  for await (const object of objects) {
    visit(object);
    yield object;
  }
}
