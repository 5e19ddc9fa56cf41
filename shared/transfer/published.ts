// The bytes of a source on their way: counted for progress, digested as published, then uncompressed.
import { verifyChecksum } from '#shared/transfer/checksum.ts';
import { createCollector } from '#shared/transfer/collect.ts';
import { decompress } from '#shared/transfer/compression/decompress.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { Pass } from '#shared/transfer/pass.ts';
import { streamAhead } from '#shared/transfer/source/stream-ahead.ts';

/** A server may answer the second request with another file, or with a page that says so, and nothing but the bytes may tell. */
const checkHead = ({ plan }: Pass, chunk: Buffer, position: number): void => {
  const known = plan.facts.head.subarray(position, position + chunk.length);
  if (known.equals(chunk.subarray(0, known.length))) return;
  throw new TransferError('SourceChanged', 'the file begins with other bytes than a moment before', {
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

/** Uncompressed bytes of the image file. */
export const contentOf = (pass: Pass): AsyncIterable<Buffer> =>
  decompress(pass.plan.inspection.compression, publishedBytes(pass));

/** The digests of the published file, held against the checksum asked for. Only after `contentOf` came to its end. */
export const verifiedDigests = (pass: Pass): Readonly<Record<string, string>> => {
  const digests = pass.digester.digests();
  if (digests === undefined) {
    throw new TransferError('ImageCorrupt', `bytes follow the end of the ${pass.plan.inspection.compression} data`);
  }
  verifyChecksum(pass.spec.checksum, digests);
  return digests;
};
