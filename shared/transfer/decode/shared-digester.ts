// Takes digests in a thread of its own, off the path of the bytes. Used by the qcow2 route.
import { Worker } from 'node:worker_threads';
import { TransferError } from '#shared/transfer/fault.ts';
import type { DigestRequest, DigesterSetup } from '#shared/transfer/decode/message.ts';

export type Digests = Readonly<Record<string, string>>;

export interface SharedDigester {
  /** Settled once the bytes were seen: then their buffer may be used again. In order of the file. */
  update(request: DigestRequest): Promise<void>;
  /** Hex digests by algorithm. */
  finish(): Promise<Digests>;
  kill(): Promise<void>;
}

const resourceLimits = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 64 };

export const createSharedDigester = (setup: DigesterSetup): SharedDigester => {
  const worker = new Worker(new URL('./digest-worker.ts', import.meta.url), { workerData: setup, resourceLimits });
  /** Answers come in the order of the questions. */
  const waiting: PromiseWithResolvers<'done' | Digests>[] = [];
  let failure: { readonly error: TransferError } | undefined;
  worker.on('message', (answer: 'done' | Digests) => waiting.shift()?.resolve(answer));
  const failAll = (cause: unknown): void => {
    failure ??= { error: new TransferError('InternalFault', 'the digesting worker died', { cause }) };
    for (const turn of waiting.splice(0)) turn.reject(failure.error);
  };
  worker.on('error', failAll);

  const ask = async (request: DigestRequest | 'finish'): Promise<'done' | Digests> => {
    if (failure !== undefined) throw failure.error;
    const turn = Promise.withResolvers<'done' | Digests>();
    waiting.push(turn);
    worker.postMessage(request);
    return turn.promise;
  };
  return {
    update: async (request) => void (await ask(request)),
    finish: async () => {
      const answer = await ask('finish');
      return answer === 'done' ? {} : answer;
    },
    kill: async () => {
      failAll(undefined);
      await worker.terminate();
    },
  };
};
