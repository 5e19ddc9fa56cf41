// What keeps a disk busy, and that an error which the kernel reports once is not lost.
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createFlushing } from '#shared/transfer/sink/flushing.ts';
import { createSparseWriter } from '#shared/transfer/sink/writer.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const mib = 1024 * 1024;

/** Flushes that end when the test releases them, in order. */
const createDisk = () => {
  const ends: (() => void)[] = [];
  let begun = 0;
  return {
    flush: () => {
      begun += 1;
      return new Promise<void>((resolve) => ends.push(resolve));
    },
    begun: () => begun,
    endOne: async () => {
      ends.shift()?.();
      // The promise, what follows it, and what that starts.
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    },
  };
};

describe('flushing during a transfer', () => {
  it.each([
    ['nothing of little', [4, 15], 0],
    ['soon the first time', [16], 1],
    ['less often then', [16, 79], 1],
    ['a second one beside the first', [16, 80], 2],
    ['never a third one', [16, 80, 400], 2],
  ])('flushes %s', (_, reached, expected) => {
    const disk = createDisk();
    const flushing = createFlushing(disk.flush);
    for (const written of reached) flushing.reach(written * mib);
    expect(disk.begun()).toBe(expected);
  });

  it('starts the next flush when one ends, without another call', async () => {
    const disk = createDisk();
    const flushing = createFlushing(disk.flush);
    for (const written of [16, 80, 400]) flushing.reach(written * mib);
    await disk.endOne();
    expect(disk.begun()).toBe(3);
    await disk.endOne();
    expect(disk.begun()).toBe(3);
  });

  it('is idle when nothing is in progress', async () => {
    const disk = createDisk();
    const flushing = createFlushing(disk.flush);
    flushing.reach(16 * mib);
    let isSettled = false;
    const settled = flushing.settled().then(() => (isSettled = true));
    await Promise.resolve();
    expect(isSettled).toBe(false);
    await disk.endOne();
    await settled;
  });
});

describe('an error of the disk', () => {
  it('in one flush fails the next, too: the kernel reports it once', async () => {
    const path = join(temporaryDirectory(), 'disk');
    const file = await open(path, 'wx+');
    const refused = Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' });
    const faults = [refused];
    file.datasync = () => {
      const fault = faults.pop();
      return fault === undefined ? Promise.resolve() : Promise.reject(fault);
    };
    const writer = createSparseWriter(file, path);
    await writer.write(Buffer.alloc(64, 1), 0);
    await expect(writer.flush()).rejects.toMatchObject({ code: 'TargetFailed' });
    await expect(writer.flush()).rejects.toMatchObject({ code: 'TargetFailed' });
    await expect(writer.finish()).rejects.toMatchObject({ code: 'TargetFailed' });
    await file.close();
  });
});
