// Limits the concurrent deliveries of one Trigger, and keeps those about one object in order. Called by dispatch.ts.

export interface Limiter {
  /** Runs `work` when a slot is free and no earlier work with the same key is waiting or running. */
  run<T>(key: string | undefined, work: () => Promise<T>): Promise<T>;
}

interface Waiting {
  readonly key: string | undefined;
  readonly start: () => void;
}

export const createLimiter = (concurrency: number): Limiter => {
  const waiting: Waiting[] = [];
  const busyKeys = new Set<string>();
  let running = 0;

  const startNext = (): void => {
    while (running < concurrency) {
      const index = waiting.findIndex(({ key }) => key === undefined || !busyKeys.has(key));
      const [next] = index === -1 ? [] : waiting.splice(index, 1);
      if (next === undefined) return;
      running += 1;
      if (next.key !== undefined) busyKeys.add(next.key);
      next.start();
    }
  };
  const release = (key: string | undefined): void => {
    running -= 1;
    if (key !== undefined) busyKeys.delete(key);
    startNext();
  };

  return {
    run: async (key, work) => {
      await new Promise<void>((start) => {
        waiting.push({ key, start });
        startNext();
      });
      try {
        return await work();
      } finally {
        release(key);
      }
    },
  };
};
