// The bytes of a source while they are read: counted for progress, digested as published, then decompressed; and the digests themselves.
import { createCollector } from '#shared/transfer/collect.ts';
import { decompress } from '#shared/transfer/compression/decompress.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { Pass, Digester } from '#shared/transfer/pass.ts';
import { streamAhead } from '#shared/transfer/source/stream-ahead.ts';
import { createHash } from 'node:crypto';
import type { Checksum } from '#shared/transfer/spec.ts';

/** Always sha256, and the requested algorithm. */
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

/** Throws ChecksumMismatch unless the requested digest was found. */
export const verifyChecksum = (wanted: Checksum | undefined, found: Readonly<Record<string, string>>): void => {
  if (wanted === undefined || found[wanted.algorithm] === wanted.hex) return;
  throw new TransferError(
    'ChecksumMismatch',
    `the ${wanted.algorithm} of the published file is ${found[wanted.algorithm] ?? 'unknown'}, not ${wanted.hex} as in the checksum`,
  );
};

/** A server may answer the second request with another file or an error page, which only the bytes reveal. */
const checkHead = ({ plan }: Pass, chunk: Buffer, position: number): void => {
  const known = plan.facts.head.subarray(position, position + chunk.length);
  if (known.equals(chunk.subarray(0, known.length))) return;
  throw new TransferError('SourceChanged', 'the file starts with other bytes than in the first request', {
    startOver: true,
  });
};

async function* counted(pass: Pass): AsyncGenerator<Buffer, void, undefined> {
  const { plan, source, meter, signal } = pass;
  const total = plan.inspection.size;
  const collectGarbage = createCollector();
  let position = 0;
  meter.expect(total);
  for await (const chunk of streamAhead(source, plan.facts)) {
    signal.throwIfAborted();
    checkHead(pass, chunk, position);
    position += chunk.length;
    if (total !== undefined && total > 0) meter.advance(position / total);
    meter.note(undefined);
    collectGarbage(chunk.length);
    yield chunk;
  }
}

/** The bytes as published, counted and digested. */
export const publishedBytes = (pass: Pass): AsyncIterable<Buffer> => pass.digester.watch(counted(pass));

/** Decompressed bytes of the image file. */
export const contentOf = (pass: Pass): AsyncIterable<Buffer> =>
  decompress(pass.plan.inspection.compression, publishedBytes(pass));

/** The digests of the published file, verified against the requested checksum. Only after `contentOf` has ended. */
export const verifiedDigests = (pass: Pass): Readonly<Record<string, string>> => {
  const digests = pass.digester.digests();
  if (digests === undefined) {
    throw new TransferError('ImageCorrupt', `bytes follow the end of the ${pass.plan.inspection.compression} data`);
  }
  verifyChecksum(pass.spec.checksum, digests);
  return digests;
};
