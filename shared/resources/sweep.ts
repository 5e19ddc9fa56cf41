// Drives everything that is not settled: what repairs lost events and enforces deadlines. Called by cron-tick.
import type { KubeObject } from '#shared/api/object.ts';
import type { DriverDeps } from '#shared/resources/driver.ts';
import { driveEach } from '#shared/resources/each.ts';
import { drivenKinds } from '#shared/resources/registry.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';

/** Told of every object that a sweep comes across. */
export type Visit = (object: KubeObject) => void;

/** Nobody is asked to deliver a tick again: the next one comes by itself. */
export const sweep = async (deps: DriverDeps, signal?: AbortSignal, visit: Visit = () => {}): Promise<Outcome> => {
  for (const driven of drivenKinds) {
    // oxlint-disable-next-line no-await-in-loop
    await driveEach(deps, driven, visited(deps.kube.listAll(driven.kind.type), visit), signal);
  }
  return done;
};

async function* visited(objects: AsyncIterable<KubeObject>, visit: Visit): AsyncIterable<KubeObject> {
  for await (const object of objects) {
    visit(object);
    yield object;
  }
}
