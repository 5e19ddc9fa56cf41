// Reconciles everything that is not settled: repairs lost events and enforces deadlines. Called by cron-tick.
import type { KubeObject, ObjectRef } from '#shared/api/object.ts';
import { reconcileEach } from '#shared/resources/each.ts';
import { tickOrder } from '#shared/resources/registry.ts';
import { type Outcome, done, worstOf } from '#shared/runtime/outcome.ts';
import { removePast } from '#shared/resources/deleted-images/keep.ts';
import { removeAbandoned } from '#shared/populate/job/start-transfer.ts';
import { advanceQueue } from '#shared/populate/queue/advance.ts';
import { ensureConfig } from '#shared/resources/cdi-config/ensure.ts';
import { createMisplacedCrons } from '#shared/resources/data-import-cron/misplaced.ts';
import { createDuePolls } from '#shared/resources/data-import-cron/due-polls.ts';
import { createDiskCounter } from '#shared/resources/golden-image-policy/disk-counts.ts';
import { createOverlookedVersions } from '#shared/resources/golden-image-policy/index.ts';
import { sweepMachines } from '#shared/resources/machine-disks/sync.ts';
import { createGoldenCopies } from '#shared/resources/golden-copies/sync.ts';
import { createOffers } from '#shared/resources/data-source/offers.ts';
import { ensureProfiles } from '#shared/resources/storage-profile/ensure.ts';
import { createUsageReport } from '#shared/resources/tenant-limit/report.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { syncTemplates } from '#shared/resources/templates/sync.ts';
import { serveUploadClaims } from '#shared/resources/upload-claims/sync.ts';
import { AppError, messageOf } from '#shared/runtime/errors.ts';
import type { ReconcileDeps, TickDeps } from '#shared/resources/deps.ts';

/** Called for every object of a sweep. */
export type Visit = (object: KubeObject) => void;

/** A failed tick is not delivered again: the next one follows anyway. */
export const sweep = async (deps: ReconcileDeps, signal?: AbortSignal, visit: Visit = () => {}): Promise<Outcome> => {
  for (const reconciler of tickOrder) {
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

/** Reconciles settled objects for which the listings showed work. */
const reconcileFound = async (deps: ReconcileDeps, refs: readonly ObjectRef[]): Promise<Outcome> => {
  const outcomes: Outcome[] = [done];
  for (const ref of refs) {
    try {
      // oxlint-disable-next-line no-await-in-loop
      outcomes.push(await reconcile(deps, ref, { which: 'all' }));
    } catch (error) {
      // A failure of one must not block the others; the next tick retries it.
      if (!(error instanceof AppError)) throw error;
      deps.log.warn('object not reconciled', { object: ref.name, error: messageOf(error) });
    }
  }
  return worstOf(outcomes);
};

/** A failed tick is not delivered again: the next one follows anyway. */
export const tick = async (deps: TickDeps, signal?: AbortSignal): Promise<Outcome> => {
  const facts = await ensureProfiles(deps);
  const misplaced = createMisplacedCrons(facts);
  const copies = createGoldenCopies(facts);
  await ensureConfig(deps);
  await removeAbandoned(deps.kube, deps.now());
  await removePast(deps);
  // Before objects are reconciled, so that their status has their place.
  await advanceQueue(deps.kube, { now: deps.now(), cause: 'tick' });
  const polls = await createDuePolls(deps);
  // First, so that the results of templates are reconciled in the same minute.
  const templates = await syncTemplates(deps);
  await sweepMachines(deps);
  await serveUploadClaims(deps);
  const overlooked = createOverlookedVersions();
  const disks = createDiskCounter();
  const usage = createUsageReport();
  const offers = createOffers();
  const swept = await sweep(deps, signal, (object) => {
    polls.visit(object);
    misplaced.visit(object);
    overlooked.visit(object);
    disks.visit(object);
    usage.visit(object);
    offers.visit(object);
    copies.visit(object);
  });
  // A CDI that is installed knows nothing of offers.
  if ((await deps.cdi()) !== 'use') await offers.carryOut(deps);
  await copies.carryOut(deps);
  await usage.write(deps);
  const found = await reconcileFound(deps, [
    ...misplaced.found,
    ...overlooked.policies(),
    ...overlooked.crons(deps.now()),
  ]);
  await disks.run(deps.kube, deps.now());
  return worstOf([templates, swept, found, await polls.run(signal)]);
};
