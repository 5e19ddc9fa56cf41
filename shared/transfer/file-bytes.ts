// Complete reads and writes: a single system call may transfer only a part.
import type { FileHandle } from 'node:fs/promises';

/** Fills `target` from `position`; returns the number of bytes, fewer only at the end of the file. Throws errors of the system. */
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
