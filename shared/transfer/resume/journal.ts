// The journal of an unfinished transfer, in a file beside the target or at the end of the device. Owned by the sinks.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readFully, writeFully } from '#shared/transfer/file-bytes.ts';
import { writing } from '#shared/transfer/fault.ts';

/** Storage for one short text that survives the process. `write` and `remove` throw TransferError. */
export interface Journal {
  /** `undefined` if there is none, or if it was not written completely. */
  read(): Promise<string | undefined>;
  /** Resolves when the text survives a power failure. */
  write(text: string): Promise<void>;
  remove(): Promise<void>;
}

export const syncDirectory = async (path: string): Promise<void> => {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
};

export const createFileJournal = (path: string): Journal => ({
  read: () => readFile(path, 'utf8').catch(() => undefined),
  write: (text) =>
    writing(path, async () => {
      const next = `${path}.next`;
      const file = await open(next, 'w', 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(next, path);
      await syncDirectory(dirname(path));
    }),
  remove: () =>
    writing(path, async () => {
      await rm(`${path}.next`, { force: true });
      if (!existsSync(path)) return;
      await rm(path, { force: true });
      await syncDirectory(dirname(path));
    }),
});

/** At the end of a device, after the guest's disk. */
export const tailBytes = 4096;
const digestBytes = 32;
const digestOf = (text: Buffer): Buffer => createHash('sha256').update(text).digest();

/** As stored on the device: a digest of the rest detects an incomplete write, and bytes of a disk. */
const pack = (text: string): Buffer => {
  const body = Buffer.alloc(tailBytes - digestBytes);
  if (body.write(text) < Buffer.byteLength(text)) throw new RangeError('the mark is longer than its space');
  return Buffer.concat([digestOf(body), body]);
};

const unpack = (bytes: Buffer): string | undefined => {
  const body = bytes.subarray(digestBytes);
  if (body[0] === 0 || !digestOf(body).equals(bytes.subarray(0, digestBytes))) return undefined;
  return body.subarray(0, body.indexOf(0)).toString();
};

/** In the last `tailBytes` of a device of `deviceBytes`; `file` returns it, open for writing. */
export const createTailJournal = (file: () => FileHandle, path: string, deviceBytes: number): Journal => {
  const put = (bytes: Buffer): Promise<void> =>
    writing(path, async () => {
      await writeFully(file(), bytes, deviceBytes - tailBytes);
      await file().datasync();
    });
  return {
    read: async () => {
      const bytes = Buffer.alloc(tailBytes);
      const got = await readFully(file(), bytes, deviceBytes - tailBytes).catch(() => 0);
      return got === tailBytes ? unpack(bytes) : undefined;
    },
    write: (text) => put(pack(text)),
    remove: () => put(Buffer.alloc(tailBytes)),
  };
};
