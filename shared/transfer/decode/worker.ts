// A decoding worker: decompresses the clusters of a segment and writes them to their position on the guest's disk. Started by pool.ts.
import { constants, openSync, writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '#shared/runtime/errors.ts';
import { isTransferError } from '#shared/transfer/fault.ts';
import { createUnpack } from '#shared/transfer/decode/cluster.ts';
import { createCoalescer } from '#shared/transfer/decode/cluster.ts';
import type { DecodeAnswer, DecodeRequest, DecoderSetup } from '#shared/transfer/decode/message.ts';
import { dataRuns } from '#shared/transfer/sink/writer.ts';

const collectBytes = 2 * 1024 * 1024;

const createDecoder = ({ buffers, carryBytes, path, clusterSize, compression, virtualSize }: DecoderSetup) => {
  // Opened on first use: the worker starts before the target is prepared.
  let opened: number | undefined;
  const segments = buffers.map((buffer) => Buffer.from(buffer));
  const unpack = createUnpack(compression, clusterSize);
  let written = 0;
  const write = (bytes: Uint8Array, position: number): void => {
    const file = (opened ??= openSync(path, constants.O_WRONLY));
    for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done, bytes.length - done, position + done);
    written += bytes.length;
  };
  const collector = createCoalescer(Math.max(collectBytes, clusterSize), write);

  const takeCompressed = (packed: Buffer, guest: number): void => {
    const plain = unpack(packed).subarray(0, virtualSize - guest);
    for (const { start, end } of dataRuns(plain)) collector.push(plain.subarray(start, end), guest + start);
  };
  const takePlain = (bytes: Buffer, guest: number): void => {
    for (const { start, end } of dataRuns(bytes)) write(bytes.subarray(start, end), guest + start);
  };
  return {
    decode: ({ buffer, tasks }: DecodeRequest): number => {
      written = 0;
      for (const { offset, length, guest, isCompressed } of tasks) {
        const bytes = segments[buffer]?.subarray(carryBytes + offset, carryBytes + offset + length) ?? Buffer.alloc(0);
        if (isCompressed) takeCompressed(bytes, guest);
        else takePlain(bytes, guest);
      }
      collector.flush();
      return written;
    },
  };
};

const faultOf = (error: unknown): DecodeAnswer => {
  const system =
    error instanceof Error && 'code' in error && !isTransferError(error) ? { system: String(error.code) } : {};
  return { fault: { message: messageOf(error), ...system } };
};

const decoder = createDecoder(workerData as DecoderSetup);
parentPort?.on('message', (request: DecodeRequest) => {
  try {
    parentPort?.postMessage({ writtenBytes: decoder.decode(request) } satisfies DecodeAnswer);
  } catch (error) {
    parentPort?.postMessage(faultOf(error));
  }
});
