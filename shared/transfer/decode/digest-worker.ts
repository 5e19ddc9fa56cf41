// A worker that takes digests of bytes in shared buffers as they pass. Started by shared-digester.ts.
import { createHash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import type { DigestRequest, DigesterSetup } from '#shared/transfer/decode/message.ts';

const zeroChunkBytes = 256 * 1024;

const { buffers, algorithms } = workerData as DigesterSetup;
const hashes = algorithms.map((algorithm) => ({ algorithm, hash: createHash(algorithm) }));

const update = (bytes: Uint8Array): void => {
  for (const { hash } of hashes) hash.update(bytes);
};

const updateZeroes = (count: number): void => {
  const zeroes = Buffer.alloc(Math.min(count, zeroChunkBytes));
  for (let rest = count; rest > 0; rest -= zeroes.length) update(zeroes.subarray(0, rest));
};

parentPort?.on('message', (request: DigestRequest | 'finish') => {
  if (request === 'finish') {
    parentPort?.postMessage(Object.fromEntries(hashes.map(({ algorithm, hash }) => [algorithm, hash.digest('hex')])));
    return;
  }
  if ('zeroes' in request) updateZeroes(request.zeroes);
  else update(new Uint8Array(buffers[request.buffer] ?? new SharedArrayBuffer(0), request.offset, request.length));
  parentPort?.postMessage('done');
});
