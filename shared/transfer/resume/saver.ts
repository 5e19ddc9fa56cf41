// Writes marks during a transfer, each after everything before it was flushed.
import { isWorthSaving, type SavePolicy } from '#shared/transfer/resume/policy.ts';
import { type Mark } from './mark.ts';
import type { HashStates } from '#shared/transfer/resume/hashes.ts';
import type { Journal } from '#shared/transfer/resume/journal.ts';

/** Digests that another process can continue. */
export interface SavableDigests {
  /** Their states after all bytes so far. */
  save(): Promise<HashStates>;
  settle(keep: 'savable' | 'fast'): Promise<void>;
}

export interface SaverOptions {
  readonly journal: Journal;
  readonly key: string;
  /** Bytes of the published file. */
  readonly size: number;
  /** Start position of this process. */
  readonly from: number;
  /** This many bytes after a mark must be on disk, too. */
  readonly overlapBytes: number;
  /** Default: digests can be computed from the target again. */
  readonly digests?: SavableDigests | undefined;
  readonly flush: () => Promise<void>;
  /** Guest bytes so far. */
  readonly writtenBytes: () => number | Promise<number>;
  readonly policy: SavePolicy;
  /** Milliseconds. */
  readonly now: () => number;
}

export interface Saver {
  /** All bytes up to `end` were read; `isWritten` resolves once they were passed to the target. In order. */
  see(end: number, isWritten: Promise<boolean>): void;
  /** Waits for a mark that is being written; none follow. Never throws. */
  stop(): Promise<void>;
}

interface Candidate {
  readonly position: number;
  readonly states: Promise<HashStates>;
}

/** The end of the contiguous written part. */
const createFrontier = (from: number) => {
  const open: { readonly end: number; isDone: boolean }[] = [];
  let reached = from;
  return {
    add: async (end: number, isWritten: Promise<boolean>): Promise<void> => {
      const entry = { end, isDone: false };
      open.push(entry);
      entry.isDone = await isWritten;
      for (let first = open[0]; first?.isDone === true; first = open[0]) {
        reached = first.end;
        open.shift();
      }
    },
    reached: () => reached,
  };
};

/** Chooses the position of the next mark, and writes it once everything before is on disk. */
const createMarker = (options: SaverOptions, turnOff: () => void) => {
  const { journal, key, size, from, overlapBytes, digests, flush, writtenBytes, policy, now } = options;
  const frontier = createFrontier(from);
  let lastAt = now();
  let candidate: Candidate | undefined;
  let saving: Promise<void> | undefined;
  const write = async ({ position, states }: Candidate): Promise<void> => {
    const mark: Mark = { key, position, writtenBytes: await writtenBytes(), states: await states };
    await flush();
    await journal.write(JSON.stringify(mark));
    lastAt = now();
    candidate = undefined;
    saving = undefined;
  };
  return {
    reach: (end: number, isWritten: Promise<boolean>) => frontier.add(end, isWritten),
    choose: (end: number): void => {
      if (candidate !== undefined || now() - lastAt < policy.everyMs) return;
      const states = digests?.save() ?? Promise.resolve({});
      states.catch(turnOff);
      candidate = { position: end, states };
    },
    writeWhenSafe: (): void => {
      if (candidate === undefined || saving !== undefined) return;
      if (frontier.reached() < Math.min(candidate.position + overlapBytes, size)) return;
      saving = write(candidate).catch(turnOff);
    },
    settled: async () => saving,
  };
};

export const createSaver = (options: SaverOptions): Saver => {
  const { size, from, digests, policy, now } = options;
  const startedAt = now();
  let mode: 'watching' | 'saving' | 'off' = from > 0 ? 'saving' : 'watching';
  // Errors of flushing and digesting are handled by their owners.
  const turnOff = (): void => {
    mode = 'off';
  };
  if (size - from < policy.leastBytes) turnOff();
  const marker = createMarker(options, turnOff);

  const decide = (end: number): void => {
    if (end - from < policy.watchBytes) return;
    const course = {
      bytes: end - from,
      ms: now() - startedAt,
      leftBytes: size - end,
      hasDigests: digests !== undefined,
    };
    mode = isWorthSaving(course, policy) ? 'saving' : 'off';
    digests?.settle(mode === 'saving' ? 'savable' : 'fast').catch(turnOff);
  };
  const writeWhenSafe = (): void => {
    if (mode === 'saving') marker.writeWhenSafe();
  };
  return {
    see: (end, isWritten) => {
      if (mode === 'off') return;
      void marker.reach(end, isWritten).then(writeWhenSafe);
      if (mode === 'watching') decide(end);
      if (mode === 'saving') marker.choose(end);
    },
    stop: async () => {
      turnOff();
      await marker.settled();
    },
  };
};
