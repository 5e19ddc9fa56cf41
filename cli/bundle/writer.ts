// Writes the archive of a bundle, blob after blob, under a temporary name. A save that was interrupted continues with what that file has: the same images
// are written in the same order, so each blob is where it was.
import { type Hash, createHash } from 'node:crypto';
import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { type BlobSpan, bytesAt, entryAt } from '#cli/bundle/archive.ts';
import { blobName, indexFile, layoutBytes, layoutFile } from '#cli/bundle/layout.ts';
import { endBytes, fileHead, paddingOf } from '#shared/transfer/archive/tar-write.ts';
import { AppError, InvalidInput, Unavailable } from '#shared/runtime/errors.ts';

export interface NewBlob {
  /** Default: known once all of it was read. */
  readonly digest?: string | undefined;
  readonly size: number;
  /** From a byte on. */
  readonly read: (from: number) => AsyncIterable<Uint8Array>;
}

export interface BundleWriter {
  /** Blobs that are complete. */
  readonly blobs: ReadonlyMap<string, BlobSpan>;
  /** Returns the digest. A blob that is there is not written again. */
  add(blob: NewBlob): Promise<string>;
  addBytes(bytes: Uint8Array): Promise<string>;
  /** Takes the last blob back. */
  dropLast(digest: string): Promise<void>;
  read(digest: string, from?: number): AsyncGenerator<Buffer, void, undefined>;
  /** Flushes it, and gives it its name. */
  finish(index: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

async function* listed(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

/** While its digest is not known, a blob has this name's length of empty bytes before it. */
const headFor = (name: string, size: number): Buffer => fileHead({ name, size, mode: 0o644, owner: 0 });
const headBytes = (size: number): number => headFor('', size).length;

const writeAt = async (file: FileHandle, bytes: Uint8Array, position: number): Promise<void> => {
  for (let at = 0; at < bytes.length;)
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
};

const hashAt = async (file: FileHandle, span: BlobSpan): Promise<Hash> => {
  const hash = createHash('sha256');
  for await (const part of bytesAt(file, span)) hash.update(part);
  return hash;
};

const digestBy = (hash: Hash): string => `sha256:${hash.digest('hex')}`;

/** What an earlier run wrote at this place: the whole blob, or its first bytes. */
const standingAt = async (file: FileHandle, at: number, { digest, size }: NewBlob) => {
  // Nothing would show that the first bytes are of another blob.
  if (digest === undefined) return 0;
  const { size: length } = await file.stat();
  const first = at + headBytes(size);
  const entry = await entryAt(file, at, length).catch(() => undefined);
  if (entry !== undefined) {
    const isThis = entry.name === blobName(digest) && entry.size === size && entry.next <= length;
    if (isThis && digestBy(await hashAt(file, entry)) === digest) return 'whole';
    return 0;
  }
  return Math.max(0, Math.min(length - first, size));
};

const fill = async (file: FileHandle, at: number, blob: NewBlob, from: number): Promise<string> => {
  const { size, digest } = blob;
  const first = at + headBytes(size);
  // What lies behind is of an earlier run, and not to be taken for a blob by the next one.
  await file.truncate(first + from);
  if (from === 0) await writeAt(file, Buffer.alloc(first - at), at);
  const hash = await hashAt(file, { position: first, size: from });
  let done = from;
  for await (const part of from === size ? [] : blob.read(from)) {
    if (done + part.length > size) throw new Unavailable(`${digest ?? 'a disk'} has more than its ${size} bytes`);
    await writeAt(file, part, first + done);
    hash.update(part);
    done += part.length;
  }
  if (done < size) throw new Unavailable(`${digest ?? 'a disk'} ended after ${done} of ${size} bytes`);
  return digestBy(hash);
};

/** Throws InvalidInput where the bytes are others than promised. */
const writeBlob = async (file: FileHandle, at: number, blob: NewBlob): Promise<string> => {
  const standing = await standingAt(file, at, blob);
  if (standing === 'whole') return blob.digest ?? '';
  let digest = await fill(file, at, blob, standing);
  // Its first bytes were of another blob.
  if (blob.digest !== undefined && digest !== blob.digest && standing > 0) digest = await fill(file, at, blob, 0);
  if (blob.digest !== undefined && digest !== blob.digest)
    throw new InvalidInput(`${blob.digest} arrived with digest ${digest}`);
  const first = at + headBytes(blob.size);
  await writeAt(file, Buffer.alloc(paddingOf(blob.size)), first + blob.size);
  await writeAt(file, headFor(blobName(digest), blob.size), at);
  return digest;
};

export const partialOf = (path: string): string => `${path}.partial`;

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
};

/** Two that write one file would change a bundle that the other has finished. Throws InvalidInput. */
const lock = async (path: string): Promise<string> => {
  const name = `${partialOf(path)}.lock`;
  try {
    await writeFile(name, String(process.pid), { flag: 'wx' });
    return name;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const pid = Number(await readFile(name, 'utf8').catch(() => ''));
  if (pid > 0 && isRunning(pid))
    throw new InvalidInput(
      `${path} is being written by process ${pid}: wait for it, or save to another file. If there is no such bullion, delete ${name}`,
    );
  // Left by one that was killed.
  await rm(name, { force: true });
  return lock(path);
};

/** A full disk, or a folder that is not there, is nobody's bug. Other errors are returned unchanged. */
export const toWriteRefusal = (path: string, error: unknown): unknown => {
  if (!(error instanceof Error) || !('syscall' in error) || error instanceof AppError) return error;
  const message = `${path} cannot be written: ${error.message}. What was written stays: make room, or name another file, and save again`;
  return new InvalidInput(message, [{ field: path, message }], { cause: error });
};

/** Continues with what an earlier run left, if `path` is the same. */
export const createBundleWriter = async (path: string): Promise<BundleWriter> => {
  const locked = await lock(path).catch((error: unknown) => {
    throw toWriteRefusal(path, error);
  });
  try {
    const writer = await openWriter(path);
    const close = async (): Promise<void> => {
      await writer.close();
      await rm(locked, { force: true });
    };
    return { ...writer, close };
  } catch (error) {
    await rm(locked, { force: true });
    throw toWriteRefusal(path, error);
  }
};

const openWriter = async (path: string): Promise<BundleWriter> => {
  const file = await open(partialOf(path), 'a+').then(async (made) => {
    await made.close();
    return open(partialOf(path), 'r+');
  });
  const blobs = new Map<string, BlobSpan>();
  let end = 0;
  const add = async (blob: NewBlob): Promise<string> => {
    if (blob.digest !== undefined && blobs.has(blob.digest)) return blob.digest;
    const digest = await writeBlob(file, end, blob);
    const position = end + headBytes(blob.size);
    if (blobs.has(digest)) return digest;
    blobs.set(digest, { position, size: blob.size });
    end = position + blob.size + paddingOf(blob.size);
    return digest;
  };
  const writeFile = async (name: string, bytes: Uint8Array): Promise<void> => {
    const whole = Buffer.concat([headFor(name, bytes.length), bytes, Buffer.alloc(paddingOf(bytes.length))]);
    await writeAt(file, whole, end);
    end += whole.length;
  };
  return {
    blobs,
    add,
    addBytes: (bytes) => {
      const digest = digestBy(createHash('sha256').update(bytes));
      return add({ digest, size: bytes.length, read: (from) => listed(bytes.subarray(from)) });
    },
    dropLast: async (digest) => {
      const { position = 0, size = 0 } = blobs.get(digest) ?? {};
      if (position + size + paddingOf(size) !== end) return;
      blobs.delete(digest);
      end = position - headBytes(size);
      await file.truncate(end);
    },
    read: (digest, from = 0) => {
      const { position, size } = blobs.get(digest) ?? { position: 0, size: 0 };
      return bytesAt(file, { position: position + from, size: size - from });
    },
    finish: async (index) => {
      await file.truncate(end);
      await writeFile(layoutFile, layoutBytes);
      await writeFile(indexFile, index);
      await writeAt(file, Buffer.alloc(endBytes), end);
      await file.sync();
      await rename(partialOf(path), path);
    },
    close: () => file.close(),
  };
};
