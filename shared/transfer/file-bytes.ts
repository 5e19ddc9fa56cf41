// Reads and writes that go on until all is done: one call to the system may do a part only.
import type { FileHandle } from 'node:fs/promises';

/** Fills `target` from `position`; how many bytes there were, fewer only at the end of the file. Throws what the system says. */
export const readFully = async (file: FileHandle, target: Uint8Array, position: number): Promise<number> => {
  let filled = 0;
  while (filled < target.length) {
    const { bytesRead } = await file.read(target, filled, target.length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
};

export const writeFully = async (file: FileHandle, bytes: Uint8Array, position: number): Promise<void> => {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
};
