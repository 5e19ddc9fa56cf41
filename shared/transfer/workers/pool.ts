// Threads that answer requests; an idle one takes the next. Used for decoding, encoding and digesting.
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { TransferError } from '#shared/transfer/fault.ts';

export interface WorkerPool<Request, Answer> {
  /** Throws InternalFault once a worker has died: its work is lost. */
  ask(request: Request): Promise<Answer>;
  /** Terminates the workers at once; pending requests are rejected. */
  kill(): Promise<void>;
}

export interface WorkerPoolOptions {
  /** A module that posts one answer per message. */
  readonly script: URL;
  readonly setup: unknown;
  readonly count: number;
  /** Work of the threads, for messages: `decoding`. */
  readonly work: string;
}

/** Small new-object spaces: the workers' memory is in shared buffers, and each would otherwise keep tens of megabytes. */
const resourceLimits: WorkerOptions['resourceLimits'] = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 128 };

interface Job<Request, Answer> {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Assigns jobs to idle workers. */
const createDispatcher = <Request, Answer>() => {
  const queue: Job<Request, Answer>[] = [];
  const idle: Worker[] = [];
  const running = new Map<Worker, Job<Request, Answer>>();
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
      worker.on('message', (answer: Answer) => {
        const job = running.get(worker);
        running.delete(worker);
        advance(worker);
        job?.resolve(answer);
      });
      idle.push(worker);
    },
    push: (job: Job<Request, Answer>): void => {
      queue.push(job);
      const worker = idle.pop();
      if (worker !== undefined) advance(worker);
    },
    drop: (): readonly Job<Request, Answer>[] => {
      const dropped = [...running.values(), ...queue.splice(0)];
      running.clear();
      return dropped;
    },
  };
};

export const createWorkerPool = <Request, Answer>(options: WorkerPoolOptions): WorkerPool<Request, Answer> => {
  const { script, setup, count, work } = options;
  const dispatcher = createDispatcher<Request, Answer>();
  let failure: { readonly error: Error } | undefined;
  const failAll = (cause: unknown): void => {
    failure ??= { error: new TransferError('InternalFault', `a ${work} worker died`, { cause }) };
    for (const job of dispatcher.drop()) job.reject(failure.error);
  };
  const all = Array.from({ length: count }, () =>
    new Worker(script, { workerData: setup, resourceLimits }).on('error', failAll),
  );
  for (const worker of all) dispatcher.join(worker);
  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        if (failure === undefined) dispatcher.push({ request, resolve, reject });
        else reject(failure.error);
      }),
    kill: async () => {
      failAll(undefined);
      await Promise.all(all.map((worker) => worker.terminate()));
    },
  };
};
