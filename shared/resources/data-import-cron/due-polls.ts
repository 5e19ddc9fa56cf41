// One tick's polls: each distinct source is asked once, whoever follows it, and a host that asked to be left alone is. Called by the tick.
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type KubeObject, type ObjectRef, refOf, isOfType } from '#shared/api/object.ts';
import type { ObserveRequest } from '#shared/golden/poll/observe.ts';
import { hostOf } from '#shared/golden/source.ts';
import {
  turnOf,
  awaitedBy,
  duePoll,
  joinRequests,
  nextPollOf,
  pollKey,
} from '#shared/resources/data-import-cron/due.ts';
import {
  type HostLine,
  type HostWait,
  askInLine,
  endHostWait,
  openLine,
  readHostWait,
} from '#shared/resources/data-import-cron/hosts.ts';
import { deliver, observedBy } from '#shared/resources/data-import-cron/poll.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

/** Sources asked at once. */
const width = 8;

/** Crons that get one answer. */
interface Group {
  request: ObserveRequest;
  readonly crons: ObjectRef[];
  /** The earliest of theirs. */
  turn: number;
}

/** What is due at one host; its order is the order of asking. */
interface Line extends HostLine {
  readonly groups: readonly Group[];
  /** Crons wait for the host that are not due yet. */
  readonly hasOthers: boolean;
  /** Before this tick: those of the line then go one after the other. */
  readonly before: HostWait | undefined;
}

export interface DuePolls {
  /** Takes note of an object that a listing came across. */
  readonly visit: (object: KubeObject) => void;
  /** When the first cron that was visited is due, in ms since the epoch. */
  readonly next: () => number;
  /** Asks what is due, and tells every cron its answer. */
  readonly run: (signal?: AbortSignal) => Promise<Outcome>;
}

/** One tick's polls. Memory grows with the crons that are due, by a reference each. */
export const createDuePolls = async (deps: ReconcileDeps): Promise<DuePolls> => {
  const mode = await deps.cdi();
  const groups = new Map<string, Group>();
  const awaited = new Set<string>();
  /** Crons that ask the same reference in different ways, such as for other architectures, share the requests of this tick. */
  const round = {};
  let next = Infinity;
  return {
    visit: (object) => {
      if (!isOfType(object, dataImportCronKind.type)) return;
      const cron = object as DataImportCron;
      next = Math.min(next, nextPollOf(observedBy(mode, cron)));
      const request = duePoll(observedBy(mode, cron), deps.now());
      if (request === undefined) {
        const host = awaitedBy(cron);
        if (host !== undefined) awaited.add(host);
        return;
      }
      const key = pollKey(request);
      const turn = turnOf(observedBy(mode, cron));
      const group = groups.get(key) ?? { request, crons: [], turn };
      group.request = joinRequests(group.request, request);
      group.turn = Math.min(group.turn, turn);
      groups.set(key, group);
      group.crons.push(refOf(object));
    },
    next: () => next,
    run: async (signal) => {
      const lines = await linesOf(deps, [...groups.values()], awaited);
      const lanes = lines.flatMap(lanesOf).values();
      const work = async (): Promise<void> => {
        for (const { line, groups: lane } of lanes) {
          for (const group of lane) {
            if (signal?.aborted === true) return;
            await pollGroup(deps, line, { ...group, request: { ...group.request, round, signal } });
          }
        }
      };
      await Promise.all(Array.from({ length: Math.min(width, groups.size) }, work));
      if (signal?.aborted !== true) await endWaits(deps, lines);
      if (groups.size > 0) deps.log.info('polled', { sources: groups.size });
      return done;
    },
  };
};

/** By host, whoever has waited longest for an answer first. */
const linesOf = async (
  { kube }: ReconcileDeps,
  groups: readonly Group[],
  awaited: ReadonlySet<string>,
): Promise<readonly Line[]> => {
  const oldestFirst = groups.toSorted((a, b) => a.turn - b.turn);
  const byHost = Map.groupBy(oldestFirst, ({ request }) => hostOf(request.source));
  const lines: Line[] = [];
  for (const [host, line] of byHost) {
    const before = host === undefined ? undefined : await readHostWait(kube, host);
    const hasOthers = host !== undefined && awaited.has(host);
    lines.push({ ...openLine(host, before), groups: line, hasOthers, before });
  }
  return lines;
};

/** What is asked in turn. A host that asked for nothing is asked about several things at once. */
const lanesOf = (line: Line): readonly { readonly line: Line; readonly groups: readonly Group[] }[] =>
  line.before === undefined ? line.groups.map((group) => ({ line, groups: [group] })) : [{ line, groups: line.groups }];

/** A host that answered everybody, and for which nobody waits, is as others are. */
const endWaits = async ({ kube, now }: ReconcileDeps, lines: readonly Line[]): Promise<void> => {
  for (const { before, wait, hasOthers } of lines) {
    if (before !== undefined && wait === before && !hasOthers && before.until <= now()) await endHostWait(kube, before);
  }
};

/** A source in trouble must not keep the others from being asked; one that was not asked is due again at the next tick. */
const pollGroup = async (deps: ReconcileDeps, line: Line, { request, crons }: Readonly<Group>): Promise<void> => {
  const { observe } = deps;
  if (observe === undefined) return;
  try {
    const askedAt = deps.now();
    const observation = await askInLine({ ...deps, observe }, line, request);
    for (const cron of crons) {
      await deliver(deps, cron, { observation, askedAt });
    }
  } catch (error) {
    deps.log.warn('source not polled', { crons: crons.length, error: messageOf(error) });
  }
};
