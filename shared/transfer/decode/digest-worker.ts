// A worker that takes digests of segments as they pass. Started by shared-digester.ts.
import { createHash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import type { DigestRequest, DigesterSetup } from '#shared/transfer/decode/message.ts';

const { buffers, algorithms } = workerData as DigesterSetup;
const hashes = algorithms.map((algorithm) => ({ algorithm, hash: createHash(algorithm) }));

parentPort?.on('message', (request: DigestRequest | 'finish') => {
  if (request === 'finish') {
    parentPort?.postMessage(Object.fromEntries(hashes.map(({ algorithm, hash }) => [algorithm, hash.digest('hex')])));
    parentPort?.close();
    return;
  }
  const bytes = new Uint8Array(buffers[request.buffer] ?? new SharedArrayBuffer(0), request.offset, request.length);
  for (const { hash } of hashes) hash.update(bytes);
  parentPort?.postMessage('done');
});
