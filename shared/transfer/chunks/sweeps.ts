// Sweeps: somebody clears away what nobody names any more. Who relies on what is in a store already looks before and after whether one went on
// meanwhile, and if so, looks again. Who sweeps announces it long before, so that whatever is short has come to its end by then.
import { z } from 'zod';
import type { Store } from '#shared/clients/store/store.ts';

const Record = z.object({
  version: z.literal(1),
  /** Names one sweep. */
  id: z.string().min(1),
  state: z.enum(['announced', 'sweeping', 'over']),
  /** Who, for messages. */
  by: z.string(),
  /** RFC 3339, by the clock of who sweeps: it has ended by then, whatever became of it. */
  until: z.string(),
});
export type SweepRecord = z.infer<typeof Record>;

/** Below a prefix that ends in a slash; sorted behind all else that is kept there. */
export const sweepKey = (prefix: string): string => `${prefix}sweep.json`;

const mostBytes = 2 ** 16;
/** How far clocks of clusters may be apart, in milliseconds. */
export const clocksApartMs = 3_600_000;

export interface ObservedSweeps {
  /** Of the record; left out: nobody has ever swept. */
  readonly revision?: string | undefined;
  /** Left out where it cannot be read. */
  readonly record?: SweepRecord | undefined;
}

export const serializeSweep = (record: SweepRecord): Buffer => Buffer.from(JSON.stringify(record));

const parse = (bytes: Buffer): SweepRecord | undefined => {
  try {
    return Record.safeParse(JSON.parse(bytes.toString('utf8'))).data;
  } catch {
    return undefined;
  }
};

export const readSweeps = async (store: Store, prefix: string): Promise<ObservedSweeps> => {
  const found = await store.read(sweepKey(prefix), mostBytes);
  return found === undefined ? {} : { revision: found.revision, record: parse(found.bytes) };
};

/** Whether nobody sweeps, or is about to. One that died without a word counts as over once it must be. */
export const isQuiet = ({ revision, record }: ObservedSweeps, now: number): boolean => {
  if (revision === undefined) return true;
  // What nobody can read may be of a later release: it is taken at its word, which nobody knows.
  if (record === undefined) return false;
  return record.state === 'over' || Date.parse(record.until) + clocksApartMs <= now;
};

export const describeSweep = ({ record }: ObservedSweeps, prefix: string): string =>
  record === undefined
    ? `the record of sweeps at ${sweepKey(prefix)} cannot be read: update Bullion, or remove it`
    : `what nobody needs is being cleared away there by ${record.by}, until ${record.until} at the latest`;

/** No sweep was announced in between, either. */
export const isSameSweep = (before: ObservedSweeps, after: ObservedSweeps): boolean =>
  before.revision === after.revision;
