// Makes a device read as zeroes, in the way that suits who wants it: with nothing allocated, or with all of it. Called by the block sink.
import type { FileHandle } from 'node:fs/promises';
import { runTool } from '#shared/transfer/tool/run-tool.ts';

const chunkBytes = 1024 * 1024;

/**
 * The cheapest ways first. Holes give back what a thin device has allocated; zeroed ranges (BLKDEV_ZERO_NOUNMAP in the kernel) have it allocate all of
 * the range, and are written out where the device cannot do so by itself.
 */
const waysTo = (isAllocated: boolean, length: number): readonly (readonly [string, ...string[]])[] => {
  const range = ['--offset', '0', '--length', String(length)];
  return [
    ['fallocate', isAllocated ? '--zero-range' : '--punch-hole', ...range],
    ['blkdiscard', '--zeroout', ...range],
  ];
};

export const writeZeroes = async (file: FileHandle, length: number, signal?: AbortSignal): Promise<void> => {
  const zeroes = Buffer.alloc(Math.min(chunkBytes, length));
  for (let at = 0; at < length; at += chunkBytes) {
    signal?.throwIfAborted();
    await file.write(zeroes, 0, Math.min(chunkBytes, length - at), at);
  }
};

export interface Zeroing {
  readonly path: string;
  readonly file: FileHandle;
  /** Bytes. */
  readonly length: number;
  readonly isAllocated: boolean;
}

/** What is written always works; a device without room for it fails with ENOSPC. */
export const zeroDevice = async ({ path, file, length, isAllocated }: Zeroing, signal: AbortSignal): Promise<void> => {
  for (const [program, ...args] of waysTo(isAllocated, length)) {
    const ended = await runTool({ program, args: [...args, path], signal });
    if (ended.status === 0) return;
  }
  await writeZeroes(file, length, signal);
};
