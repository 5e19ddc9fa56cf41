// Workers that unpack and write segments, and the segments' buffers. Used by the qcow2 route.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { TransferError, toWriteFault } from '#shared/transfer/fault.ts';
import { corrupt } from '#shared/transfer/format/disk.ts';
import type { DecodeAnswer, DecodeRequest, DecoderSetup } from '#shared/transfer/decode/message.ts';

export interface DecodePool {
  /** Settled once the segment is unpacked and written. Throws TransferError: ImageCorrupt, TargetFull, TargetFailed. */
  decode(request: DecodeRequest): Promise<void>;
  writtenBytes(): number;
  /** Waits for what is under way, then ends the workers. Never throws. */
  close(): Promise<void>;
  /** Ends the workers at once. */
  kill(): Promise<void>;
}

interface Job {
  readonly request: DecodeRequest;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const errorOf = (answer: Extract<DecodeAnswer, { fault: object }>, path: string): unknown => {
  const { message, system } = answer.fault;
  return system === undefined
    ? corrupt(message)
    : toWriteFault(Object.assign(new Error(message), { code: system }), path);
};

/** Small new-object spaces: the workers' memory is in shared buffers, and each would otherwise keep tens of megabytes. */
const resourceLimits = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 128 };

const startWorker = (setup: DecoderSetup): Worker =>
  new Worker(new URL('./worker.ts', import.meta.url), { workerData: setup, resourceLimits });

/** Hands jobs to whichever worker is idle. */
const createDispatcher = (onAnswer: (job: Job, answer: DecodeAnswer) => void) => {
  const queue: Job[] = [];
  const idle: Worker[] = [];
  const running = new Map<Worker, Job>();
  const advance = (worker: Worker): void => {
    const job = queue.shift();
    if (job === undefined) {
      idle.push(worker);
      return;
    }
    running.set(worker, job);
    worker.postMessage(job.request);
  };
  return {
    join: (worker: Worker): void => {
      worker.on('message', (answer: DecodeAnswer) => {
        const job = running.get(worker);
        running.delete(worker);
        if (job !== undefined) onAnswer(job, answer);
        advance(worker);
      });
      idle.push(worker);
    },
    push: (job: Job): void => {
      queue.push(job);
      const worker = idle.pop();
      if (worker !== undefined) advance(worker);
    },
    drop: (): readonly Job[] => {
      const dropped = [...running.values(), ...queue.splice(0)];
      running.clear();
      return dropped;
    },
  };
};

export const createDecodePool = (setup: DecoderSetup, workers: number): DecodePool => {
  let written = 0;
  let failure: { readonly error: Error } | undefined;
  const dispatcher = createDispatcher((job, answer) => {
    if ('fault' in answer) return job.reject(errorOf(answer, setup.path));
    written += answer.writtenBytes;
    return job.resolve();
  });
  /** A worker that dies takes the pool with it: its share of the work is lost. */
  const failAll = (error: unknown): void => {
    failure ??= { error: new TransferError('InternalFault', 'a decoding worker died', { cause: error }) };
    for (const job of dispatcher.drop()) job.reject(failure.error);
  };
  const all = Array.from({ length: workers }, () => startWorker(setup).on('error', failAll));
  for (const worker of all) dispatcher.join(worker);
  return {
    decode: (request) =>
      new Promise((resolve, reject) => {
        if (failure === undefined) dispatcher.push({ request, resolve, reject });
        else reject(failure.error);
      }),
    writtenBytes: () => written,
    close: async () => {
      const ended = all.map((worker) => once(worker, 'exit'));
      for (const worker of all) worker.postMessage('close');
      await Promise.all(ended);
    },
    kill: async () => {
      failAll(undefined);
      await Promise.all(all.map((worker) => worker.terminate()));
    },
  };
};
