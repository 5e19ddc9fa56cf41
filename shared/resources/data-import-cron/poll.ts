// Asks the sources of crons that are due: each distinct source once, whoever follows it, and hands the answers to the crons. Called by the tick and
// by initialize.
import { buildSourcePolled } from '#events/build.ts';
import type { CloudEvent } from '#events/event.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type KubeObject, type ObjectRef, apiVersionOf, refOf } from '#shared/api/object.ts';
import type { Observation } from '#shared/golden/poll/observation.ts';
import type { ObserveRequest } from '#shared/golden/poll/observe.ts';
import { asHooked, hookAnnotations } from '#shared/resources/data-import-cron/cdi-hook.ts';
import { countPoll } from '#shared/resources/data-import-cron/counts.ts';
import {
  askAgain,
  duePoll,
  isContradicted,
  dueAgain,
  isOvertaken,
  isStale,
  joinRequests,
  pollKey,
  recordOf,
} from '#shared/resources/data-import-cron/due.ts';
import type { CdiMode } from '#shared/resources/cdi-mode.ts';
import { type DriverDeps, drive } from '#shared/resources/driver.ts';
import { countNote, sayNote } from '#shared/resources/write.ts';
import { isConflict, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, done, retry } from '#shared/runtime/outcome.ts';

/** Sources asked at once. */
const width = 8;
const maxRounds = 5;

interface Group {
  request: ObserveRequest;
  readonly crons: ObjectRef[];
}

/** What a source said, and when it was asked: it may be heard of much later, or twice. */
interface Answer {
  readonly observation: Observation;
  /** Milliseconds since the epoch. */
  readonly askedAt: number;
}

export interface DuePolls {
  /** Takes note of an object that a listing came across. */
  readonly visit: (object: KubeObject) => void;
  /** Asks what is due, and tells every cron its answer. */
  readonly run: (signal?: AbortSignal) => Promise<Outcome>;
}

/** The cron as polls see it; where CDI is installed, it is CDI's but for the hook it leaves to others. */
const seenBy = (mode: CdiMode | undefined, cron: DataImportCron): DataImportCron =>
  mode === 'use' ? asHooked(cron) : cron;

const isCron = ({ apiVersion, kind }: KubeObject): boolean =>
  kind === dataImportCronKind.type.kind && apiVersion === apiVersionOf(dataImportCronKind.type);

/** One tick's polls. Memory grows with the crons that are due, by a reference each. */
export const createDuePolls = async (deps: DriverDeps): Promise<DuePolls> => {
  const mode = await deps.cdi?.();
  const groups = new Map<string, Group>();
  /** Crons that ask the same reference in different ways, such as for other architectures, share the requests of this tick. */
  const round = {};
  return {
    visit: (object) => {
      if (!isCron(object)) return;
      const request = duePoll(seenBy(mode, object as DataImportCron), deps.now());
      if (request === undefined) return;
      const key = pollKey(request);
      const group = groups.get(key) ?? { request, crons: [] };
      group.request = joinRequests(group.request, request);
      groups.set(key, group);
      group.crons.push(refOf(object));
    },
    run: async (signal) => {
      const waiting = [...groups.values()].values();
      const work = async (): Promise<void> => {
        for (const group of waiting) {
          if (signal?.aborted === true) return;
          // oxlint-disable-next-line no-await-in-loop
          await pollGroup(deps, { ...group, request: { ...group.request, round, signal } });
        }
      };
      await Promise.all(Array.from({ length: Math.min(width, groups.size) }, work));
      if (groups.size > 0) deps.log.info('polled', { sources: groups.size });
      return done;
    },
  };
};

/** A source in trouble must not keep the others from being asked; one that was not asked is due again at the next tick. */
const pollGroup = async (deps: DriverDeps, { request, crons }: Readonly<Group>): Promise<void> => {
  try {
    const askedAt = deps.now();
    const observation = await deps.observe?.(request);
    if (observation === undefined) return;
    for (const cron of crons) {
      // oxlint-disable-next-line no-await-in-loop
      await hand(deps, cron, { observation, askedAt });
    }
  } catch (error) {
    deps.log.warn('source not polled', { crons: crons.length, error: messageOf(error) });
  }
};

const polledEvent = (cron: ObjectRef, { observation, askedAt }: Answer, source: string): CloudEvent =>
  buildSourcePolled({ cron, observation }, { source, now: new Date(askedAt) });

/** As an event where there is a sink, so that the work spreads over instances; else, or when nobody takes it, at once. */
const hand = async (deps: DriverDeps, cron: ObjectRef, answer: Answer): Promise<void> => {
  const { observation, askedAt } = answer;
  const event = polledEvent(cron, answer, 'bullion.dev/cron-tick');
  const isTaken = deps.send !== undefined && (await deps.send(event)).isDelivered;
  if (!isTaken) await recordObservation(deps, cron, observation, askedAt);
};

/** Polls a cron that is due by itself: a new one, or one whose next time somebody wrote. */
export const pollIfDue = async (deps: DriverDeps, object: KubeObject): Promise<Outcome> => {
  if (!isCron(object) || deps.observe === undefined) return done;
  const mode = await deps.cdi?.();
  if (duePoll(seenBy(mode, object as DataImportCron), deps.now()) === undefined) return done;
  // The event may be old, and the poll long made.
  const fresh = await deps.kube.get(dataImportCronKind.type, refOf(object));
  const request = fresh && duePoll(seenBy(mode, fresh), deps.now());
  if (fresh === undefined || request === undefined) return done;
  const askedAt = deps.now();
  const observation = await deps.observe(request);
  const outcome = await recordObservation(deps, refOf(fresh), observation, askedAt);
  // For whoever listens; here it is dealt with, and an answer that is heard of again changes nothing.
  await deps.send?.(polledEvent(refOf(fresh), { observation, askedAt }, 'bullion.dev/initialize'));
  return outcome;
};

/** Writes an answer into its cron and drives it. `askedAt`: milliseconds since the epoch, now when left out. */
export const recordObservation = async (
  deps: DriverDeps,
  cron: ObjectRef,
  observation: Observation,
  askedAt = deps.now(),
): Promise<Outcome> => {
  for (let round = 0; round < maxRounds; round += 1) {
    try {
      // oxlint-disable-next-line no-await-in-loop
      return await recordOnce(deps, cron, { observation, askedAt });
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  return retry(2, `DataImportCron ${cron.name} keeps being changed by others`);
};

/** The digest is written before the memory of it: a crash between the two costs a request, never a version. */
const recordOnce = async (deps: DriverDeps, ref: ObjectRef, { observation, askedAt }: Answer): Promise<Outcome> => {
  const { type } = dataImportCronKind;
  const cron = await deps.kube.get(type, ref);
  if (cron === undefined || cron.metadata.uid !== ref.uid) return done;
  const mode = await deps.cdi?.();
  if (isOvertaken(seenBy(mode, cron), askedAt)) {
    if (mode !== 'use' && isContradicted(cron, observation))
      await deps.kube.mergePatch(type, ref, { metadata: askAgain(deps.now()) });
    return done;
  }
  const answered = recordOf(seenBy(mode, cron), observation, deps.now());
  const recorded = isStale(observation, askedAt, deps.now()) ? dueAgain(answered, deps.now()) : answered;
  const { annotations, lastPoll } = recorded;
  const { resourceVersion } = cron.metadata;
  if (mode === 'use') {
    await deps.kube.mergePatch(type, ref, { metadata: { resourceVersion, annotations: hookAnnotations(recorded) } });
    await tell(deps, ref, cron, lastPoll);
    return done;
  }
  const marked = await deps.kube.mergePatch(type, ref, { metadata: { resourceVersion, annotations } });
  const counts = countPoll(marked.status?.counts ?? {}, lastPoll);
  await deps.kube.replace(
    type,
    { ...marked, status: { ...marked.status, lastPoll, counts } },
    { subresource: 'status' },
  );
  await tell(deps, ref, cron, lastPoll);
  return drive(deps, ref, { which: 'all' });
};

const decisions = { Same: 'unchanged', Changed: 'changed', Failed: 'not asked' } as const;

/** Every poll is counted on one Event, which says what the newest decided; a change, and the first failure of several, have one of their own. */
const tell = async (
  deps: DriverDeps,
  ref: ObjectRef,
  before: DataImportCron,
  poll: NonNullable<DataImportCron['status']>['lastPoll'],
): Promise<void> => {
  if (poll === undefined) return;
  const isFailure = poll.outcome === 'Failed';
  const said = { type: isFailure ? 'Warning' : 'Normal', message: poll.message } as const;
  const decision = `${decisions[poll.outcome]}: ${poll.message}`;
  await countNote(deps, ref, { ...said, reason: 'SourcePolled', message: decision, occurrence: 'polls' });
  if (poll.outcome === 'Same' || poll.failures > 1) return;
  await sayNote(deps, ref, {
    ...said,
    reason: isFailure ? 'PollFailed' : 'SourceChanged',
    occurrence: `poll/${poll.time}/${before.metadata.uid ?? ''}`,
  });
};
