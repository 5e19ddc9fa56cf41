// Reconciles everything that is not settled: repairs lost events and enforces deadlines. Called by cron-tick.
import type { KubeObject } from '#shared/api/object.ts';
import { reconcileEach } from '#shared/resources/each.ts';
import { reconcilers } from '#shared/resources/registry.ts';
import { type Outcome, done, worstOf } from '#shared/runtime/outcome.ts';
import { removeAbandoned } from '#shared/populate/job/start-transfer.ts';
import { ensureConfig } from '#shared/resources/cdi-config/ensure.ts';
import { createMisplacedCrons } from '#shared/resources/data-import-cron/misplaced.ts';
import { createDuePolls } from '#shared/resources/data-import-cron/due-polls.ts';
import { sweepMachines } from '#shared/resources/machine-disks/sync.ts';
import { ensureProfiles } from '#shared/resources/storage-profile/ensure.ts';
import { syncTemplates } from '#shared/resources/templates/sync.ts';
import { serveUploadClaims } from '#shared/resources/upload-claims/sync.ts';
import type { ReconcileDeps, TickDeps } from '#shared/resources/deps.ts';

/** Called for every object of a sweep. */
export type Visit = (object: KubeObject) => void;

/** A failed tick is not delivered again: the next one follows anyway. */
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

// Runs each minute: unsettled objects are reconciled, and due sources are polled. One listing serves both.

/** A failed tick is not delivered again: the next one follows anyway. */
export const tick = async (deps: TickDeps, signal?: AbortSignal): Promise<Outcome> => {
  const misplaced = createMisplacedCrons(deps, await ensureProfiles(deps));
  await ensureConfig(deps);
  await removeAbandoned(deps.kube, deps.now());
  const polls = await createDuePolls(deps);
  // First, so that the results of templates are reconciled in the same minute.
  const templates = await syncTemplates(deps);
  await sweepMachines(deps);
  await serveUploadClaims(deps);
  const swept = await sweep(deps, signal, (object) => {
    polls.visit(object);
    misplaced.visit(object);
  });
  return worstOf([templates, swept, await misplaced.run(), await polls.run(signal)]);
};
