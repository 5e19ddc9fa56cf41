// A tick that looks at everything: repairs lost events, and enforces deadlines. Called by the ticker, which decides when.
import { type Job, jobs as jobKind } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeObject, ObjectRef } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type UnsettledNotes, createUnsettledNotes } from '#shared/resources/agenda.ts';
import { reconcileEach } from '#shared/resources/each.ts';
import { tickOrder } from '#shared/resources/registry.ts';
import { type Outcome, done, worstOf } from '#shared/runtime/outcome.ts';
import { removePast } from '#shared/resources/deleted-images/keep.ts';
import { removeAbandoned } from '#shared/populate/job/start-transfer.ts';
import { advanceQueue } from '#shared/populate/queue/advance.ts';
import { ensureConfig } from '#shared/resources/cdi-config/ensure.ts';
import { createMisplacedCrons } from '#shared/resources/data-import-cron/misplaced.ts';
import { type DuePolls, createDuePolls } from '#shared/resources/data-import-cron/due-polls.ts';
import { createDiskCounter } from '#shared/resources/golden-image-policy/disk-counts.ts';
import { createOverlookedVersions } from '#shared/resources/golden-image-policy/index.ts';
import { sweepMachines } from '#shared/resources/machine-disks/sync.ts';
import { createGoldenCopies } from '#shared/resources/golden-copies/sync.ts';
import { createOffers } from '#shared/resources/data-source/offers.ts';
import { ensureProfiles } from '#shared/resources/storage-profile/ensure.ts';
import { createUsageReport } from '#shared/resources/tenant-limit/report.ts';
import { isLeftToCdi, reconcile } from '#shared/resources/reconcile.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';
import { syncTemplates } from '#shared/resources/templates/sync.ts';
import { serveUploadClaims } from '#shared/resources/upload-claims/sync.ts';
import { AppError, messageOf } from '#shared/runtime/errors.ts';
import type { ReconcileDeps, TickDeps } from '#shared/resources/deps.ts';

/** Called for every object of a sweep. */
export type Visit = (object: KubeObject) => void;

interface SweepOptions {
  readonly signal?: AbortSignal | undefined;
  readonly visit?: Visit;
  readonly notes?: UnsettledNotes;
}

/** What is left to a CDI looks unsettled, and is no work of ours. */
export const noteFor = async (
  deps: ReconcileDeps,
  reconciler: Reconciler,
  notes: UnsettledNotes | undefined,
): Promise<UnsettledNotes['add'] | undefined> =>
  notes === undefined || (await isLeftToCdi(deps, reconciler)) ? undefined : notes.add;

/** Reconciles every object that is not settled. */
export const sweep = async (deps: ReconcileDeps, { signal, visit, notes }: SweepOptions = {}): Promise<Outcome> => {
  for (const reconciler of tickOrder) {
    const objects = visited(deps.kube.listAll(reconciler.kind.type), visit);
    const onUnsettled = await noteFor(deps, reconciler, notes);
    await reconcileEach(deps, reconciler, objects, { signal, onUnsettled });
  }
  return done;
};

export async function* visited(objects: AsyncIterable<KubeObject>, visit?: Visit): AsyncIterable<KubeObject> {
  for await (const object of objects) {
    visit?.(object);
    yield object;
  }
}

/** Reconciles settled objects for which the listings showed work. */
const reconcileFound = async (deps: ReconcileDeps, refs: readonly ObjectRef[]): Promise<Outcome> => {
  const outcomes: Outcome[] = [done];
  for (const ref of refs) {
    try {
      outcomes.push(await reconcile(deps, ref, { which: 'all' }));
    } catch (error) {
      // A failure of one must not block the others; the next tick retries it.
      if (!(error instanceof AppError)) throw error;
      deps.log.warn('object not reconciled', { object: ref.name, error: messageOf(error) });
    }
  }
  return worstOf(outcomes);
};

export interface TickParts {
  readonly signal?: AbortSignal | undefined;
  /** Every Job of ours, as it was listed just now. */
  readonly jobs: readonly Job[];
  /** Milliseconds since the epoch: when the last sweep began, if that is known. */
  readonly sweptBefore?: number | undefined;
  readonly notes: UnsettledNotes;
}

/** Whose transfers wait for their turn, and what is left of starts that were interrupted. */
export const advanceTransfers = async ({ kube, now }: ReconcileDeps, jobs: readonly Job[]): Promise<void> => {
  const has = (label: string): boolean => jobs.some(({ metadata }) => metadata.labels?.[label] !== undefined);
  if (has(labels.starting)) await removeAbandoned(kube, now());
  // Before objects are reconciled, so that their status has their place.
  if (has(labels.queue)) await advanceQueue(kube, { now: now(), cause: 'tick' });
};

/** Unsettled objects are reconciled, and `polls` learn what is due: one listing serves both. A failed tick is not delivered again: the next one follows anyway. */
export const reconcileAll = async (
  deps: TickDeps,
  polls: DuePolls,
  { signal, jobs, sweptBefore, notes }: TickParts,
): Promise<Outcome> => {
  const facts = await ensureProfiles(deps);
  const misplaced = createMisplacedCrons(facts);
  const copies = createGoldenCopies(facts);
  await ensureConfig(deps);
  await removePast(deps);
  await advanceTransfers(deps, jobs);
  // First, so that the results of templates are reconciled in the same minute.
  const templates = await syncTemplates(deps);
  await sweepMachines(deps);
  await serveUploadClaims(deps);
  const overlooked = createOverlookedVersions();
  const disks = createDiskCounter();
  const usage = createUsageReport();
  const offers = createOffers();
  const visit = (object: KubeObject): void => {
    polls.visit(object);
    misplaced.visit(object);
    overlooked.visit(object);
    disks.visit(object);
    usage.visit(object);
    offers.visit(object);
    copies.visit(object);
  };
  const swept = await sweep(deps, { signal, visit, notes });
  // A CDI that is installed knows nothing of offers.
  if ((await deps.cdi()) !== 'use') await offers.carryOut(deps);
  await copies.carryOut(deps);
  await usage.write(deps);
  const found = await reconcileFound(deps, [
    ...misplaced.found,
    ...overlooked.policies(),
    ...overlooked.crons(deps.now()),
  ]);
  await disks.run(deps.kube, deps.now(), sweptBefore);
  return worstOf([templates, swept, found]);
};

export const listJobs = (kube: KubeClient): Promise<readonly Job[]> =>
  Array.fromAsync(kube.listAll(jobKind, { labelSelector: labels.ownerUid }));

/** A tick without those before it. */
export const tick = async (deps: TickDeps, signal?: AbortSignal): Promise<Outcome> => {
  const jobs = await listJobs(deps.kube);
  const polls = await createDuePolls(deps);
  const looked = await reconcileAll(deps, polls, { signal, jobs, notes: createUnsettledNotes() });
  return worstOf([looked, await polls.run(signal)]);
};
