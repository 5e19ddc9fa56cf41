// A pool of shared buffers with a fixed size: the memory limit of a transfer.

export interface BufferPool {
  readonly buffers: readonly SharedArrayBuffer[];
  /** Waits for a free buffer; returns its index. */
  acquire(): Promise<number>;
  hasFree(): boolean;
  release(index: number): void;
  /** Makes every pending or future `acquire` throw `error`. */
  fail(error: unknown): void;
}

export const createBufferPool = (count: number, bytes: number): BufferPool => {
  const buffers = Array.from({ length: count }, () => new SharedArrayBuffer(bytes));
  const free = [...buffers.keys()];
  const waiting: PromiseWithResolvers<number>[] = [];
  let failure: { readonly error: unknown } | undefined;
  return {
    buffers,
    acquire: async () => {
      if (failure !== undefined) throw failure.error;
      const index = free.pop();
      if (index !== undefined) return index;
      const turn = Promise.withResolvers<number>();
      waiting.push(turn);
      return turn.promise;
    },
    hasFree: () => free.length > 0,
    release: (index) => {
      const next = waiting.shift();
      if (next === undefined) free.push(index);
      else next.resolve(index);
    },
    fail: (error) => {
      failure ??= { error };
      for (const turn of waiting.splice(0)) turn.reject(error);
    },
  };
};
