// Computes digests in a separate thread, in parallel to the transfer. Used by the qcow2 route and by exports.
import { createHash } from 'node:crypto';
import type { DigestAnswer, DigestCommand, DigestRequest, DigesterSetup } from '#shared/transfer/decode/message.ts';
import type { SavableDigests } from '#shared/transfer/resume/saver.ts';
import { createWorkerPool } from '#shared/transfer/workers/pool.ts';

export interface SharedDigester {
  /** Resolves once the bytes were read: then their buffer may be reused. In order of the file. */
  update(request: DigestRequest): Promise<void>;
  /** Hex digests by algorithm. */
  finish(): Promise<Readonly<Record<string, string>>>;
  kill(): Promise<void>;
}

export interface SavableDigester extends SharedDigester, SavableDigests {}

/** In the same thread: for files too small to be worth another one. */
export const createInlineDigester = ({ buffers, algorithms }: DigesterSetup): SharedDigester => {
  const hashes = algorithms.map((algorithm) => ({ algorithm, hash: createHash(algorithm) }));
  return {
    update: (request) => {
      const bytes =
        'zeroes' in request
          ? Buffer.alloc(request.zeroes)
          : new Uint8Array(buffers[request.buffer] ?? new SharedArrayBuffer(0), request.offset, request.length);
      for (const { hash } of hashes) hash.update(bytes);
      return Promise.resolve();
    },
    finish: () =>
      Promise.resolve(Object.fromEntries(hashes.map(({ algorithm, hash }) => [algorithm, hash.digest('hex')]))),
    kill: () => Promise.resolve(),
  };
};

export const createSharedDigester = (setup: DigesterSetup): SavableDigester => {
  const script = new URL('./digest-worker.ts', import.meta.url);
  // One worker: it receives the bytes in order.
  const pool = createWorkerPool<DigestCommand, DigestAnswer>({ script, setup, count: 1, work: 'digesting' });
  return {
    update: async (request) => void (await pool.ask(request)),
    settle: async (keep) => void (await pool.ask({ settle: keep })),
    save: async () => {
      const answer = await pool.ask('save');
      return answer !== 'done' && 'states' in answer ? answer.states : {};
    },
    finish: async () => {
      const answer = await pool.ask('finish');
      return answer !== 'done' && 'digests' in answer ? answer.digests : {};
    },
    kill: () => pool.kill(),
  };
};
