// A worker that computes digests of bytes in shared buffers. Started by shared-digester.ts.
import { parentPort, workerData } from 'node:worker_threads';
import type { DigestAnswer, DigestCommand, DigesterSetup } from '#shared/transfer/decode/message.ts';
import { createHashes } from '#shared/transfer/resume/hashes.ts';

const zeroChunkBytes = 256 * 1024;

const { buffers, algorithms, savable = 'never' } = workerData as DigesterSetup;
const hashes = await createHashes(algorithms, savable);

const updateZeroes = (count: number): void => {
  const zeroes = Buffer.alloc(Math.min(count, zeroChunkBytes));
  for (let rest = count; rest > 0; rest -= zeroes.length) hashes.update(zeroes.subarray(0, rest));
};

const answer = (command: DigestCommand): DigestAnswer => {
  if (command === 'finish') return { digests: hashes.digests() };
  if (command === 'save') return { states: hashes.save() };
  if ('settle' in command) hashes.settle(command.settle);
  else if ('zeroes' in command) updateZeroes(command.zeroes);
  else {
    const { buffer, offset, length } = command;
    hashes.update(new Uint8Array(buffers[buffer] ?? new SharedArrayBuffer(0), offset, length));
  }
  return 'done';
};

parentPort?.on('message', (command: DigestCommand) => parentPort?.postMessage(answer(command)));
