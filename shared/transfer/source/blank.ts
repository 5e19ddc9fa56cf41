// An empty disk as a source: one sector of zeroes, which the target grows to its own size.
import { smallestDiskBytes } from '#shared/transfer/format/detect.ts';
import type { Source } from '#shared/transfer/source/source.ts';

export const createBlankSource = (): Source => {
  const bytes = Buffer.alloc(smallestDiskBytes);
  return {
    probe: () =>
      Promise.resolve({
        size: bytes.length,
        head: bytes,
        isWhole: true,
        hasRanges: true,
        isPinned: true,
        isGuestDisk: true,
      }),
    read: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
    readInto: async (_offset, target) => void target.fill(0),
    stream: async function* stream() {
      yield await Promise.resolve(bytes);
    },
    receivedBytes: () => 0,
    close: () => Promise.resolve(),
  };
};
