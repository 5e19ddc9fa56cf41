// Removes unreferenced data of a target, coordinated with all its writers: announced, executed, then recorded as finished.
import { randomUUID } from 'node:crypto';
import { dataPrefix, metadataPrefix, sweepMarkKey, sweepMarkPrefix } from '#shared/backup/place.ts';
import { type Garbage, type OwnBackups, lookForGarbage } from '#shared/backup/sweep/look.ts';
import { graceMs } from '#shared/backup/sweep/plan.ts';
import { inParallel } from '#shared/backup/look.ts';
import { type Store, isTaken } from '#shared/clients/store/store.ts';
import { AppError, Conflict, Unavailable } from '#shared/runtime/errors.ts';
import {
  type SweepRecord,
  describeSweep,
  isQuiet,
  readSweeps,
  serializeSweep,
  sweepKey,
} from '#shared/transfer/chunks/sweeps.ts';

/**
 * Milliseconds between announcement and start: writers of metadata finish within one request of an event function, at most a minute, and longer
 * operations check the record again at their end.
 */
export const announcedMs = 15 * 60_000;
/** Time limit of a sweep; the next one continues. */
const sweepMs = 2 * 3_600_000;
/** Objects that are removed between two checks of the record. */
const batch = 500;

export interface Sweeping {
  readonly store: Store;
  /** Called once all other writers have stopped. */
  readonly own: () => Promise<OwnBackups>;
  /** Name of the sweeper, for messages of others. */
  readonly by: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Throws the reason of the signal. */
  readonly wait: (milliseconds: number) => Promise<void>;
  readonly signal: AbortSignal;
  readonly say: (message: string) => void;
}

interface Held {
  record: SweepRecord;
  revision: string;
}

const key = sweepKey(dataPrefix);
const iso = (time: number): string => new Date(time).toISOString();

const announce = async ({ store, by, now }: Sweeping): Promise<Held> => {
  const before = await readSweeps(store, dataPrefix);
  if (!isQuiet(before, now())) throw new Conflict(describeSweep(before, dataPrefix));
  const until = iso(now() + announcedMs + sweepMs);
  const record: SweepRecord = { version: 1, id: randomUUID(), state: 'announced', by, until };
  try {
    const expected = before.revision === undefined ? 'nothing' : { revision: before.revision };
    return { record, revision: await store.write(key, serializeSweep(record), expected) };
  } catch (error) {
    if (!isTaken(error)) throw error;
    throw new Conflict('another sweep of this target was just announced', { cause: error });
  }
};

const move = async ({ store }: Sweeping, held: Held, state: SweepRecord['state']): Promise<void> => {
  const record = { ...held.record, state };
  held.revision = await store.write(key, serializeSweep(record), { revision: held.revision });
  held.record = record;
};

const tooLong = (): Unavailable => new Unavailable('the sweep exceeded its time limit; the next one continues');

/** Other writers consider a sweep finished after its deadline. */
const checkTime = ({ now, signal }: Sweeping, { record }: Held): void => {
  signal.throwIfAborted();
  if (Date.parse(record.until) <= now()) throw tooLong();
};

const checkHeld = async (sweeping: Sweeping, held: Held): Promise<void> => {
  checkTime(sweeping, held);
  const { record } = await readSweeps(sweeping.store, dataPrefix);
  if (record?.id !== held.record.id) throw tooLong();
};

const removeAll = async (sweeping: Sweeping, held: Held, keys: readonly string[]): Promise<void> => {
  for (let at = 0; at < keys.length; at += batch) {
    await checkHeld(sweeping, held);
    await inParallel(keys.slice(at, at + batch), async (one) => {
      // The machine may have been suspended during a batch.
      checkTime(sweeping, held);
      await sweeping.store.remove(one);
    });
  }
};

/** Marks of dead sweeps sort after a new one, so the new listing would look incomplete. */
const removeMarks = async ({ store }: Sweeping): Promise<void> => {
  for (const { key: mark } of await Array.fromAsync(store.list(sweepMarkPrefix))) await store.remove(mark);
};

/** The mark of each listing is rewritten, so that a listing without it is recognized as incomplete. */
const clear = async (sweeping: Sweeping, held: Held): Promise<Garbage> => {
  const { store, own, now } = sweeping;
  await move(sweeping, held, 'sweeping');
  await removeMarks(sweeping);
  const mark = sweepMarkKey(held.record.id);
  await store.write(mark, Buffer.from(held.record.id));
  try {
    const garbage = await lookForGarbage(store, own, { marks: { metadata: mark, data: key }, now: now() });
    // Tables first: a chunk without a table is unreferenced.
    await removeAll(
      sweeping,
      held,
      garbage.tables.map((one) => one.key),
    );
    await removeAll(
      sweeping,
      held,
      garbage.chunks.map((one) => one.key),
    );
    for (const prefix of [dataPrefix, metadataPrefix]) await store.tidy?.(prefix, now() - graceMs);
    return garbage;
  } finally {
    await store.remove(mark);
  }
};

/** Throws errors of the store, or the reason why nothing is removed; the next sweep continues. */
export const sweepTarget = async (sweeping: Sweeping): Promise<Garbage> => {
  const held = await announce(sweeping);
  try {
    sweeping.say(`announced to all writers of the target; it starts at ${iso(sweeping.now() + announcedMs)}`);
    await sweeping.wait(announcedMs);
    return await clear(sweeping, held);
  } finally {
    await end(sweeping, held);
  }
};

/** If the end cannot be recorded, others rely on the deadline. */
const end = async (sweeping: Sweeping, held: Held): Promise<void> => {
  try {
    await move(sweeping, held, 'over');
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    sweeping.say(
      `the end of the sweep could not be recorded (${error.message}): backups resume after ${held.record.until}`,
    );
  }
};
