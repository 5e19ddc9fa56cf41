// Writes into a cron what its source answered. Called by the polls of a tick, and by initialize for a cron that is due by itself.
import { buildSourcePolled } from '#events/build.ts';
import type { CloudEvent } from '#events/event.ts';
import { type DataImportCron, dataImportCronKind, PollStatus } from '#shared/api/cdi/data-import-cron.ts';
import { type KubeObject, type ObjectRef, refOf, isOfType } from '#shared/api/object.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { Observation } from '#shared/golden/poll/observation.ts';
import { countPoll } from '#shared/resources/data-import-cron/verdict.ts';
import { askAlone } from '#shared/resources/data-import-cron/hosts.ts';
import {
  type Answered,
  type Waiting,
  askAgain,
  duePoll,
  isContradicted,
  dueAgain,
  isOvertaken,
  isStale,
  recordOf,
  type Recorded,
} from '#shared/resources/data-import-cron/due.ts';
import type { CdiMode } from '#shared/resources/cdi-mode.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { countNote, recordNote } from '#shared/resources/write.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import { type Outcome, done, retry } from '#shared/runtime/outcome.ts';
import { annotations } from '#shared/api/names.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { tolerate, retryConflicts } from '#shared/clients/kube/tolerant.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

const maxRounds = 5;

/** The answer of a source, and when it was asked: it may be delivered much later, or twice. */
interface Answer<O extends Observation = Observation> {
  readonly observation: O;
  /** Milliseconds since the epoch. */
  readonly askedAt: number;
}

/** The cron as polls see it; where CDI is installed, it is CDI's but for the hook it leaves to others. */
export const observedBy = (mode: CdiMode | undefined, cron: DataImportCron): DataImportCron =>
  mode === 'use' ? asHooked(cron) : cron;

const polledEvent = (cron: ObjectRef, { observation, askedAt }: Answer, source: string): CloudEvent =>
  buildSourcePolled({ cron, observation }, { source, now: new Date(askedAt) });

/**
 * Recorded here, by the instance that asked: an event may come from anybody. The instance that receives the event does what follows from it, so
 * that the work spreads over instances; it is done at once if the event cannot be delivered.
 */
export const deliver = async (deps: ReconcileDeps, cron: ObjectRef, answer: Answer): Promise<void> => {
  const recorded = await record(deps, cron, answer);
  const sent = await deps.send?.(polledEvent(cron, answer, 'bullion.dev/cron-tick'));
  if (recorded === 'news' && sent?.isDelivered !== true) await reconcile(deps, cron, { which: 'all' });
};

/** Polls a cron that is due by itself: a new one, or one whose next time somebody wrote. */
export const pollIfDue = async (deps: ReconcileDeps, object: KubeObject): Promise<Outcome> => {
  if (!isOfType(object, dataImportCronKind.type) || deps.observe === undefined) return done;
  const mode = await deps.cdi();
  if (duePoll(observedBy(mode, object as DataImportCron), deps.now()) === undefined) return done;
  // The event may be old, and the poll long made.
  const fresh = await deps.kube.get(dataImportCronKind.type, refOf(object));
  const request = fresh && duePoll(observedBy(mode, fresh), deps.now());
  if (fresh === undefined || request === undefined) return done;
  const askedAt = deps.now();
  const observation = await askAlone({ ...deps, observe: deps.observe }, request);
  if (observation === undefined) return done;
  const outcome = await recordObservation(deps, refOf(fresh), observation, askedAt);
  // For whoever listens; here it is dealt with, and an answer that is heard of again changes nothing.
  await deps.send?.(polledEvent(refOf(fresh), { observation, askedAt }, 'bullion.dev/initialize'));
  return outcome;
};

/** Writes an answer into its cron and reconciles it. `askedAt`: milliseconds since the epoch, now when left out. */
export const recordObservation = async (
  deps: ReconcileDeps,
  cron: ObjectRef,
  observation: Observation,
  askedAt = deps.now(),
): Promise<Outcome> => {
  const recorded = await record(deps, cron, { observation, askedAt });
  return recorded === 'news' ? reconcile(deps, cron, { which: 'all' }) : recorded;
};

/** `news`: the cron is to be reconciled for it. */
const record = async (
  deps: ReconcileDeps,
  cron: ObjectRef,
  { observation, askedAt }: Answer,
): Promise<Outcome | 'news'> => {
  const write = () =>
    observation.is === 'waiting'
      ? recordWait(deps, cron, observation, askedAt)
      : recordOnce(deps, cron, { observation, askedAt });
  const recorded = await tolerate(retryConflicts<Outcome | 'news'>(maxRounds, write), isConflict);
  return recorded ?? retry(2, `DataImportCron ${cron.name} keeps being changed by other clients`);
};

/** The digest is written before the memory of it: a crash between the two costs a request, never a version. */
const recordOnce = async (
  deps: ReconcileDeps,
  ref: ObjectRef,
  { observation, askedAt }: Answer<Answered>,
): Promise<Outcome | 'news'> => {
  const { type } = dataImportCronKind;
  const cron = await deps.kube.get(type, ref);
  if (cron === undefined || cron.metadata.uid !== ref.uid) return done;
  const mode = await deps.cdi();
  if (isOvertaken(observedBy(mode, cron), askedAt)) {
    if (mode !== 'use' && isContradicted(cron, observation))
      await deps.kube.mergePatch(type, ref, { metadata: askAgain(deps.now()) });
    return done;
  }
  const answered = recordOf(observedBy(mode, cron), observation, deps.now());
  const recorded = isStale(observation, askedAt, deps.now()) ? dueAgain(answered, deps.now()) : answered;
  const { annotations, lastPoll } = recorded;
  const { resourceVersion } = cron.metadata;
  if (mode === 'use') {
    await deps.kube.mergePatch(type, ref, { metadata: { resourceVersion, annotations: hookAnnotations(recorded) } });
    await recordEvents(deps, ref, cron, lastPoll);
    return done;
  }
  const marked = await deps.kube.mergePatch(type, ref, { metadata: { resourceVersion, annotations } });
  const counts = countPoll(marked.status?.counts ?? {}, lastPoll);
  const { waiting: _over, ...status } = marked.status ?? {};
  await deps.kube.replace(type, { ...marked, status: { ...status, lastPoll, counts } }, { subresource: 'status' });
  await recordEvents(deps, ref, cron, lastPoll);
  return 'news';
};

/** No poll, and no attempt: the cron says what it waits for, and until when. */
const recordWait = async (
  deps: ReconcileDeps,
  ref: ObjectRef,
  { message, until }: Waiting,
  askedAt: number,
): Promise<Outcome | 'news'> => {
  const { type } = dataImportCronKind;
  const cron = await deps.kube.get(type, ref);
  if (cron === undefined || cron.metadata.uid !== ref.uid || isOvertaken(cron, askedAt)) return done;
  // Where CDI is installed its crons have no place for this: they are put off again at the next tick.
  if ((await deps.cdi()) === 'use') return done;
  const { resourceVersion } = cron.metadata;
  const annotations = { [cdiAnnotations.nextCronTime]: until };
  const marked = await deps.kube.mergePatch(type, ref, { metadata: { resourceVersion, annotations } });
  const status = { ...marked.status, waiting: { message, until } };
  await deps.kube.replace(type, { ...marked, status }, { subresource: 'status' });
  return 'news';
};

const decisions = { Same: 'unchanged', Changed: 'changed', Failed: 'failed' } as const;

/** Every poll is counted on one Event, which says what the newest decided; a change, and the first failure of several, have one of their own. */
const recordEvents = async (
  deps: ReconcileDeps,
  ref: ObjectRef,
  before: DataImportCron,
  poll: NonNullable<DataImportCron['status']>['lastPoll'],
): Promise<void> => {
  if (poll === undefined) return;
  const isFailure = poll.outcome === 'Failed';
  const note = { type: isFailure ? 'Warning' : 'Normal', message: poll.message } as const;
  const decision = `${decisions[poll.outcome]}: ${poll.message}`;
  await countNote(deps, ref, { ...note, reason: 'SourcePolled', message: decision, occurrence: 'polls' });
  if (poll.outcome === 'Same' || poll.failures > 1) return;
  await recordNote(deps, ref, {
    ...note,
    reason: isFailure ? 'PollFailed' : 'SourceChanged',
    occurrence: `poll/${poll.time}/${before.metadata.uid ?? ''}`,
  });
};

// Polling for a CDI that is installed: crons with an empty schedule import whatever digest stands in their annotation, and we write it there.
// Their status is CDI's, so what a poll remembers is an annotation of ours. Pure.

const Kept = PollStatus.extend({ next: PollStatus.shape.time.optional() });

const keptOf = ({ metadata }: DataImportCron) => parseJsonAs(Kept, metadata.annotations?.[annotations.poll]);

/**
 * The cron as polls see it: our schedule in the place of the empty one, and what we remember in the place of a status. One with a schedule in
 * its spec is CDI's to poll, and has none here.
 */
const asHooked = (cron: DataImportCron): DataImportCron => {
  const {
    [cdiAnnotations.nextCronTime]: _next,
    [cdiAnnotations.lastCronTime]: _last,
    ...rest
  } = cron.metadata.annotations ?? {};
  const schedule = cron.spec.schedule === '' ? (cron.metadata.annotations?.[annotations.schedule] ?? '') : '';
  const kept = keptOf(cron);
  if (kept === undefined)
    return { ...cron, metadata: { ...cron.metadata, annotations: rest }, spec: { ...cron.spec, schedule }, status: {} };
  const { next, ...lastPoll } = kept;
  const times = {
    [cdiAnnotations.lastCronTime]: lastPoll.time,
    ...(next === undefined ? {} : { [cdiAnnotations.nextCronTime]: next }),
  };
  return {
    ...cron,
    metadata: { ...cron.metadata, annotations: { ...rest, ...times } },
    spec: { ...cron.spec, schedule },
    status: { lastPoll },
  };
};

/** What is written: the digest, where it is a new one, and what is remembered. */
const hookAnnotations = ({ annotations: recorded, lastPoll }: Recorded): Readonly<Record<string, string>> => {
  const { [cdiAnnotations.nextCronTime]: next, [cdiAnnotations.desiredDigest]: digest } = recorded;
  return {
    ...(digest === undefined ? {} : { [cdiAnnotations.desiredDigest]: digest }),
    [annotations.poll]: JSON.stringify({ ...lastPoll, next }),
  };
};
