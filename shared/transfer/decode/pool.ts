// Workers that unpack and write segments. Used by the qcow2 route.
import { toWriteFault } from '#shared/transfer/fault.ts';
import { corrupt } from '#shared/transfer/format/disk.ts';
import type { DecodeAnswer, DecodeRequest, DecoderSetup } from '#shared/transfer/decode/message.ts';
import { createWorkerPool } from '#shared/transfer/workers/pool.ts';

export interface DecodePool {
  /** Settled once the segment is unpacked and written. Throws TransferError: ImageCorrupt, TargetFull, TargetFailed. */
  decode(request: DecodeRequest): Promise<void>;
  writtenBytes(): number;
  /** Ends the workers at once. */
  kill(): Promise<void>;
}

const errorOf = (answer: Extract<DecodeAnswer, { fault: object }>, path: string): unknown => {
  const { message, system } = answer.fault;
  return system === undefined
    ? corrupt(message)
    : toWriteFault(Object.assign(new Error(message), { code: system }), path);
};

export const createDecodePool = (setup: DecoderSetup, workers: number): DecodePool => {
  const script = new URL('./worker.ts', import.meta.url);
  const pool = createWorkerPool<DecodeRequest, DecodeAnswer>({ script, setup, count: workers, work: 'decoding' });
  let written = 0;
  return {
    decode: async (request) => {
      const answer = await pool.ask(request);
      if ('fault' in answer) throw errorOf(answer, setup.path);
      written += answer.writtenBytes;
    },
    writtenBytes: () => written,
    kill: () => pool.kill(),
  };
};
