// Digests of the published file, taken as its bytes pass.
import { createHash } from 'node:crypto';
import { TransferError } from '#shared/transfer/fault.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

export interface Digester {
  /** Hands `input` on and takes the digests of all of it. */
  watch(input: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
  /** Hex digests by algorithm, once the file is over; `undefined` before. */
  digests(): Readonly<Record<string, string>> | undefined;
}

/** sha256 always, and the algorithm asked for. */
export const algorithmsFor = (wanted: Checksum | undefined): readonly string[] => [
  ...new Set(['sha256', ...(wanted === undefined ? [] : [wanted.algorithm])]),
];

/** Digests of `algorithmsFor(wanted)`. */
export const createDigester = (wanted: Checksum | undefined): Digester => {
  const hashes = algorithmsFor(wanted).map((algorithm) => ({ algorithm, hash: createHash(algorithm) }));
  let result: Readonly<Record<string, string>> | undefined;
  return {
    watch: async function* (input) {
      for await (const chunk of input) {
        for (const { hash } of hashes) hash.update(chunk);
        yield chunk;
      }
      result = Object.fromEntries(hashes.map(({ algorithm, hash }) => [algorithm, hash.digest('hex')]));
    },
    digests: () => result,
  };
};

/** Throws ChecksumMismatch unless the digest asked for was found. */
export const verifyChecksum = (wanted: Checksum | undefined, found: Readonly<Record<string, string>>): void => {
  if (wanted === undefined || found[wanted.algorithm] === wanted.hex) return;
  throw new TransferError(
    'ChecksumMismatch',
    `the ${wanted.algorithm} of the published file is ${found[wanted.algorithm] ?? 'unknown'}, not ${wanted.hex} as the checksum says`,
  );
};
