// Collects unpacked neighbours so that they are written together. Used in the decoding workers.

/** Writes all of `bytes` at `position`. */
export type WriteAt = (bytes: Uint8Array, position: number) => void;

export interface Coalescer {
  /** Copies `bytes`; writes what was collected first where it does not continue it. */
  push(bytes: Uint8Array, position: number): void;
  flush(): void;
}

export const createCoalescer = (capacity: number, write: WriteAt): Coalescer => {
  const collected = Buffer.allocUnsafeSlow(capacity);
  let start = 0;
  let length = 0;
  const flush = (): void => {
    if (length > 0) write(collected.subarray(0, length), start);
    length = 0;
  };
  return {
    flush,
    push: (bytes, position) => {
      if (position !== start + length || length + bytes.length > capacity) flush();
      if (length === 0) start = position;
      collected.set(bytes, length);
      length += bytes.length;
    },
  };
};
