// Digests of a file that is being read, and their states if the transfer may be resumed. Used by the digesting worker.
import { createHash } from 'node:crypto';
import type { SavableHash } from '#shared/transfer/resume/savable-hash.ts';

/** By algorithm, in base64. */
export type HashStates = Readonly<Record<string, string>>;

/** States of an earlier process, or whether a later process may need to resume; `undecided` is settled during the transfer (`settle`). */
export type Savable = { readonly states: HashStates } | 'undecided' | 'never';

export interface Hashes {
  update(bytes: Uint8Array): void;
  /** Hex digests by algorithm. */
  digests(): Readonly<Record<string, string>>;
  /** Empty if states cannot be saved. */
  save(): HashStates;
  /** From here on only one implementation is updated: the one that can be saved, or the fast one. */
  settle(keep: 'savable' | 'fast'): void;
}

interface Entry {
  readonly algorithm: string;
  fast?: ReturnType<typeof createHash> | undefined;
  savable?: SavableHash | undefined;
}

const entriesOf = (algorithms: readonly string[], savable: Savable): Promise<readonly Entry[]> =>
  Promise.all(
    algorithms.map(async (algorithm): Promise<Entry> => {
      if (savable === 'never') return { algorithm, fast: createHash(algorithm) };
      const { createSavableHash } = await import('#shared/transfer/resume/savable-hash.ts');
      return savable === 'undecided'
        ? { algorithm, fast: createHash(algorithm), savable: await createSavableHash(algorithm) }
        : { algorithm, savable: await createSavableHash(algorithm, savable.states[algorithm]) };
    }),
  );

export const createHashes = async (algorithms: readonly string[], savable: Savable): Promise<Hashes> => {
  const entries = await entriesOf(algorithms, savable);
  return {
    update: (bytes) => {
      for (const { fast, savable: slow } of entries) {
        fast?.update(bytes);
        slow?.update(bytes);
      }
    },
    digests: () =>
      Object.fromEntries(
        entries.map(({ algorithm, fast, savable: slow }) => [algorithm, fast?.digest('hex') ?? slow?.digest() ?? '']),
      ),
    save: () =>
      Object.fromEntries(
        entries.flatMap(({ algorithm, savable: slow }) =>
          slow === undefined ? [] : [[algorithm, Buffer.from(slow.save()).toString('base64')]],
        ),
      ),
    settle: (keep) => {
      for (const entry of entries) {
        if (keep === 'fast' && entry.fast !== undefined) entry.savable = undefined;
        if (keep === 'savable' && entry.savable !== undefined) entry.fast = undefined;
      }
    },
  };
};
