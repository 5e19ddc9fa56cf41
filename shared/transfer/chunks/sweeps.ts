// Sweeps remove chunks that are not referenced any more. A writer that relies on existing chunks checks for a sweep before and after, and if
// there was one, checks the chunks again. A sweep is announced long before it starts, so that short operations have ended by then.
import { z } from 'zod';
import type { Store } from '#shared/clients/store/store.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

const Record = z.object({
  version: z.literal(1),
  /** Identifies one sweep. */
  id: z.string().min(1),
  state: z.enum(['announced', 'sweeping', 'over']),
  /** Name of the sweeper, for messages. */
  by: z.string(),
  /** RFC 3339, by the clock of the sweeper: the sweep has ended by then in any case. */
  until: z.string(),
});
export type SweepRecord = z.infer<typeof Record>;

/** `prefix` ends in a slash; sorts after all other keys. */
export const sweepKey = (prefix: string): string => `${prefix}sweep.json`;

const mostBytes = 2 ** 16;
/** Maximal clock skew between clusters, in milliseconds. */
export const clocksApartMs = 3_600_000;

export interface ObservedSweeps {
  /** Revision of the record. Default: there was never a sweep. */
  readonly revision?: string | undefined;
  /** Missing if it cannot be parsed. */
  readonly record?: SweepRecord | undefined;
}

export const serializeSweep = (record: SweepRecord): Buffer => Buffer.from(JSON.stringify(record));

const parse = (bytes: Buffer): SweepRecord | undefined => parseJsonAs(Record, bytes.toString('utf8'));

export const readSweeps = async (store: Store, prefix: string): Promise<ObservedSweeps> => {
  const found = await store.read(sweepKey(prefix), mostBytes);
  return found === undefined ? {} : { revision: found.revision, record: parse(found.bytes) };
};

/** Whether no sweep is running or announced. A sweep of a dead process counts as ended after its deadline. */
export const isQuiet = ({ revision, record }: ObservedSweeps, now: number): boolean => {
  if (revision === undefined) return true;
  // A record that cannot be parsed may be of a later release, with an unknown deadline.
  if (record === undefined) return false;
  return record.state === 'over' || Date.parse(record.until) + clocksApartMs <= now;
};

export const describeSweep = ({ record }: ObservedSweeps, prefix: string): string =>
  record === undefined
    ? `the record of sweeps at ${sweepKey(prefix)} cannot be read: update Bullion, or remove it`
    : `a sweep by ${record.by} is removing unused chunks there, until ${record.until} at the latest`;

/** No other sweep was announced in between. */
export const isSameSweep = (before: ObservedSweeps, after: ObservedSweeps): boolean =>
  before.revision === after.revision;
