// Clears away what nobody names any more, in the sight of everybody who writes to the target: announced, then done, then told as over.
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
 * Milliseconds between the word and the deed: whatever else writes metadata does so within one request of an event function, which ends after a
 * minute, and what takes longer looks at the record again when it is done.
 */
export const announcedMs = 15 * 60_000;
/** Milliseconds a sweep may take; the next one takes up what is left. */
const sweepMs = 2 * 3_600_000;
/** Objects that are removed between two looks at the record. */
const batch = 500;

export interface Sweeping {
  readonly store: Store;
  /** Asked once everybody else has stopped writing. */
  readonly own: () => Promise<OwnBackups>;
  /** Who sweeps, for messages of others. */
  readonly by: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Throws the signal's reason. */
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
    throw new Conflict('somebody else has just announced a sweep of this target', { cause: error });
  }
};

const move = async ({ store }: Sweeping, held: Held, state: SweepRecord['state']): Promise<void> => {
  const record = { ...held.record, state };
  held.revision = await store.write(key, serializeSweep(record), { revision: held.revision });
  held.record = record;
};

const tooLong = (): Unavailable => new Unavailable('the sweep has taken too long; the next one takes up what is left');

/** Others take a sweep for over once its time has come. */
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
      // A machine may sleep in the middle of a batch.
      checkTime(sweeping, held);
      await sweeping.store.remove(one);
    });
  }
};

/** Of sweeps that died: sorted behind a new one, one would make its listing look as if it were not whole. */
const removeMarks = async ({ store }: Sweeping): Promise<void> => {
  for (const { key: mark } of await Array.fromAsync(store.list(sweepMarkPrefix))) await store.remove(mark);
};

/** A mark of each listing is written anew, so that a listing without it is known not to be whole. */
const clear = async (sweeping: Sweeping, held: Held): Promise<Garbage> => {
  const { store, own, now } = sweeping;
  await move(sweeping, held, 'sweeping');
  await removeMarks(sweeping);
  const mark = sweepMarkKey(held.record.id);
  await store.write(mark, Buffer.from(held.record.id));
  try {
    const garbage = await lookForGarbage(store, own, { marks: { metadata: mark, data: key }, now: now() });
    // Tables first: a chunk whose table is gone is nobody's.
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

/** Throws what the store throws, or why nothing is cleared away; what has not been by then is the next sweep's. */
export const sweepTarget = async (sweeping: Sweeping): Promise<Garbage> => {
  const held = await announce(sweeping);
  try {
    sweeping.say(`announced to everybody who writes there; it begins at ${iso(sweeping.now() + announcedMs)}`);
    await sweeping.wait(announcedMs);
    return await clear(sweeping, held);
  } finally {
    await end(sweeping, held);
  }
};

/** What cannot be told is known by its time. */
const end = async (sweeping: Sweeping, held: Held): Promise<void> => {
  try {
    await move(sweeping, held, 'over');
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    sweeping.say(`that it is over could not be told (${error.message}): backups go on after ${held.record.until}`);
  }
};
