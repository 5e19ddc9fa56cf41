// The tick of each minute. A sweep looks at everything, from time to time and when something has moved; between two sweeps, a tick looks at what the last
// one left unsettled, so that an installation at rest costs two requests a minute. Called by cron-tick.
import type { KubeObject, ObjectRef } from '#shared/api/object.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import {
  type Agenda,
  createUnsettledNotes,
  hasSettled,
  isSweepDue,
  mostRemembered,
  reportWrites,
  fingerprintOf,
} from '#shared/resources/agenda.ts';
import { type DuePolls, createDuePolls } from '#shared/resources/data-import-cron/due-polls.ts';
import type { TickDeps } from '#shared/resources/deps.ts';
import { reconcileEach } from '#shared/resources/each.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';
import { tickOrder } from '#shared/resources/registry.ts';
import { type TickParts, listJobs, reconcileAll, noteFor, advanceTransfers, visited } from '#shared/resources/sweep.ts';
import { serveUploadClaims } from '#shared/resources/upload-claims/sync.ts';
import { type Outcome, done, worstOf } from '#shared/runtime/outcome.ts';

async function* reread(kube: KubeClient, { kind }: Reconciler, refs: readonly ObjectRef[]): AsyncIterable<KubeObject> {
  for (const { namespace, name } of refs) {
    const object = await kube.get(kind.type, { namespace, name });
    if (object !== undefined) yield object;
  }
}

/** Looks at what was not settled, at crons if one is due, and at claims of others, which cause no events. */
const reconcileUnsettled = async (
  deps: TickDeps,
  { unsettled }: Agenda,
  polls: DuePolls | undefined,
  { signal, jobs, notes }: TickParts,
): Promise<Outcome> => {
  await advanceTransfers(deps, jobs);
  await serveUploadClaims(deps);
  for (const reconciler of tickOrder) {
    const { type } = reconciler.kind;
    const refs = unsettled.get(reconciler) ?? [];
    const visit = type === dataImportCronKind.type ? polls?.visit : undefined;
    const isListed = visit !== undefined || refs.length > mostRemembered;
    const objects = isListed ? visited(deps.kube.listAll(type), visit) : reread(deps.kube, reconciler, refs);
    const onUnsettled = visit === undefined ? notes.add : await noteFor(deps, reconciler, notes);
    await reconcileEach(deps, reconciler, objects, { signal, onUnsettled });
  }
  return (await polls?.run(signal)) ?? done;
};

export interface TickOptions {
  readonly signal?: AbortSignal | undefined;
  /** What a sweep does besides: whether all of that is as it should be. */
  readonly also?: ((kube: KubeClient) => Promise<boolean>) | undefined;
  /** Counts what happened outside of ticks that may be work for a sweep. */
  readonly news?: number | undefined;
}

export type Ticker = (deps: TickDeps, options?: TickOptions) => Promise<Outcome>;

interface Ticked {
  readonly outcome: Outcome;
  readonly agenda: Agenda;
}

/** What polls write is no work for a sweep: they do not get this client. */
const countWrites = (deps: TickDeps): { readonly counted: TickDeps; readonly count: () => number } => {
  let count = 0;
  const kube = reportWrites(deps.kube, () => (count += 1));
  return { counted: { ...deps, kube }, count: () => count };
};

const sweepAll = async (
  deps: TickDeps,
  { sweptAt, fingerprint }: Pick<Agenda, 'sweptAt' | 'fingerprint'>,
  parts: TickParts,
  also: TickOptions['also'],
): Promise<Ticked> => {
  const { counted, count } = countWrites(deps);
  const polls = await createDuePolls(deps);
  const [looked, isComplete = true] = await Promise.all([reconcileAll(counted, polls, parts), also?.(counted.kube)]);
  const isMoved = !isComplete || count() > 0;
  const tookMs = deps.now() - sweptAt;
  const outcome = worstOf([looked, await polls.run(parts.signal)]);
  return {
    outcome,
    agenda: { sweptAt, tookMs, fingerprint, unsettled: parts.notes.all(), nextPoll: polls.next(), isMoved },
  };
};

const follow = async (deps: TickDeps, before: Agenda, parts: TickParts): Promise<Ticked> => {
  const { counted, count } = countWrites(deps);
  const polls = before.nextPoll <= deps.now() ? await createDuePolls(deps) : undefined;
  const outcome = await reconcileUnsettled(counted, before, polls, parts);
  const unsettled = parts.notes.all();
  const isMoved = before.isMoved || count() > 0 || hasSettled(before.unsettled, unsettled);
  return { outcome, agenda: { ...before, unsettled, nextPoll: polls?.next() ?? before.nextPoll, isMoved } };
};

/** Ticks with what the last one learned. `sweepMs`: milliseconds between two sweeps at rest; 0: each tick sweeps. */
export const createTicker = (sweepMs: number): Ticker => {
  let agenda: Agenda | undefined;
  return async (deps, { signal, also, news = 0 } = {}) => {
    const before = agenda;
    // A tick that fails, is interrupted, or overlaps with another leaves nothing to the next.
    agenda = undefined;
    const now = deps.now();
    const jobs = await listJobs(deps.kube);
    const fingerprint = fingerprintOf(jobs, news);
    const parts = { signal, jobs, sweptBefore: before?.sweptAt, notes: createUnsettledNotes() };
    const isSweep = before === undefined || isSweepDue(before, { now, fingerprint, sweepMs });
    const ticked = isSweep
      ? await sweepAll(deps, { sweptAt: now, fingerprint }, parts, also)
      : await follow(deps, before, parts);
    if (signal?.aborted !== true) ({ agenda } = ticked);
    return ticked.outcome;
  };
};
