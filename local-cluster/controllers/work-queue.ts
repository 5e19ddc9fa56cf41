// A queue of keys for one controller: each key is processed by one caller at a time, and retried after a failure.
import { setTimeout as sleep } from 'node:timers/promises';

export interface WorkQueueOptions {
  /** Processes one key. Resolves with the milliseconds after which the key is due again, or `undefined` to wait for a change. */
  readonly work: (key: string) => Promise<number | undefined>;
  /** Called for every failure; the key is retried automatically. */
  readonly onFailure: (key: string, error: unknown) => void;
  /** Maximum number of keys processed at the same time. */
  readonly concurrency?: number;
  /** First and longest delay after failures of one key, in milliseconds. */
  readonly backOffMs?: { readonly first: number; readonly most: number };
}

export interface WorkQueue {
  /** Adds the key. Adding it while it is being processed causes another run afterwards. */
  add(key: string): void;
  /** Adds the key after `ms`; the earliest of several such requests applies. */
  addAfter(key: string, ms: number): void;
  /** Accepts no more keys and resolves when the running ones are finished. */
  stop(): Promise<void>;
}

export const createWorkQueue = (options: WorkQueueOptions): WorkQueue => {
  const { work, onFailure, concurrency = 4, backOffMs = { first: 50, most: 15_000 } } = options;
  const waiting = new Set<string>();
  const running = new Map<string, Promise<void>>();
  const timers = new Map<string, { readonly timer: NodeJS.Timeout; readonly due: number }>();
  const failures = new Map<string, number>();
  let stopped = false;

  const add = (key: string): void => {
    if (stopped) return;
    clearTimer(key);
    waiting.add(key);
    pump();
  };

  const clearTimer = (key: string): void => {
    clearTimeout(timers.get(key)?.timer);
    timers.delete(key);
  };

  const addAfter = (key: string, ms: number): void => {
    const due = Date.now() + ms;
    const known = timers.get(key);
    if (stopped || waiting.has(key) || (known !== undefined && known.due <= due)) return;
    clearTimer(key);
    timers.set(key, { due, timer: setTimeout(() => add(key), ms) });
  };

  const attempt = async (key: string): Promise<void> => {
    try {
      const after = await work(key);
      failures.delete(key);
      if (after !== undefined) addAfter(key, after);
    } catch (error) {
      if (stopped) return;
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      onFailure(key, error);
      addAfter(key, Math.min(backOffMs.most, backOffMs.first * 2 ** (count - 1)));
    }
  };

  const pump = (): void => {
    for (const key of waiting) {
      if (running.size >= concurrency) return;
      if (running.has(key)) continue;
      waiting.delete(key);
      const finished = attempt(key).finally(() => {
        running.delete(key);
        pump();
      });
      running.set(key, finished);
    }
  };

  return {
    add,
    addAfter,
    stop: async () => {
      stopped = true;
      waiting.clear();
      for (const key of timers.keys()) clearTimer(key);
      while (running.size > 0)
        await Promise.race([Promise.all(running.values()), sleep(10_000, undefined, { ref: false })]);
    },
  };
};
