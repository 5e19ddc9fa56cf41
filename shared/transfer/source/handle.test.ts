import type { FileHandle } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { sourceOf } from '#shared/transfer/source/handle.ts';

/** A file on a network: a read gives three bytes at most. */
const slow = (content: Buffer): FileHandle =>
  ({
    read: (target: Uint8Array, at: number, length: number, from: number) => {
      const bytes = content.subarray(from, from + Math.min(3, length));
      target.set(bytes, at);
      return Promise.resolve({ bytesRead: bytes.length });
    },
  }) as unknown as FileHandle;

const open = (content: string, size: number) =>
  sourceOf({ file: slow(Buffer.from(content)), size, what: 'disk' }, new AbortController().signal);

it('a read that returns less than requested is continued, and is not a change', async () => {
  const source = open('0123456789', 10);
  expect((await source.read(1, 8)).toString()).toBe('12345678');
  expect(source.receivedBytes()).toBe(8);
});

it('a file that became shorter is a change', async () => {
  await expect(open('0123', 10).read(0, 10)).rejects.toMatchObject({ code: 'SourceChanged' });
});
