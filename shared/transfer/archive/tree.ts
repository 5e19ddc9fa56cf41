// The files of an archive in a mounted file system. Nothing is written outside of it: names that lead outside are rejected when parsed
// (tar-header.ts), and since links are never created, none can be followed.
import { constants } from 'node:fs';
import { chmod, mkdir, open, opendir, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TarEntry } from '#shared/transfer/archive/tar.ts';
import { broken } from '#shared/transfer/archive/tar-header.ts';
import { TransferError, writing } from '#shared/transfer/fault.ts';
import { syncDirectory } from '#shared/transfer/resume/journal.ts';
import { createSparseWriter } from '#shared/transfer/sink/writer.ts';
import type { TransferTarget } from '#shared/transfer/spec.ts';

export interface Tree {
  /** Removes the previous content. */
  prepare(): Promise<void>;
  /** Returns the bytes of the files. Throws TransferError for an invalid entry before any of it is written. */
  unpack(entries: AsyncIterable<TarEntry>, signal: AbortSignal): Promise<number>;
  /** Syncs names to disk, like the bytes. */
  commit(): Promise<void>;
  /** Removes everything. Never throws. */
  abandon(): Promise<void>;
}

/** Created by the file system itself. */
export const ownOfFileSystem = 'lost+found';

/** Permissions that the unpacking process needs, whatever the archive contains. */
const ownFileMode = 0o600;
const ownDirectoryMode = 0o700;
/** For directories that contain files but are not entries themselves. */
const usualDirectoryMode = 0o775;

const quoted = (name: string): string => JSON.stringify(name.slice(0, 200));

/** Entries that conflict, such as a file and a directory of the same name, or names that no file system supports. */
const clashes = new Set(['EISDIR', 'ENOTDIR', 'EEXIST', 'ENAMETOOLONG', 'ELOOP']);

const placing = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (clashes.has(code)) throw broken(`has an entry that cannot be created (${code}): ${quoted(name)}`);
    throw error;
  }
};

const requireRoom = (bytes: number, capacityBytes: number): void => {
  if (bytes <= capacityBytes) return;
  throw new TransferError(
    'ImageTooLarge',
    `the files of the archive have at least ${bytes} bytes, the volume takes ${capacityBytes}; ask for a larger volume`,
  );
};

const refuseKind = ({ name, kind }: TarEntry): never => {
  const isLink = kind.endsWith('link');
  throw new TransferError(
    isLink ? 'ExternalReference' : 'UnsupportedFormat',
    `${quoted(name)} in the archive is ${kind}: only files and directories are unpacked; pack it without them (tar --dereference writes the targets of links)`,
  );
};

const writeFile = async (path: string, { content, mode, size }: TarEntry, signal: AbortSignal): Promise<void> => {
  const { O_CREAT, O_TRUNC, O_WRONLY, O_NOFOLLOW } = constants;
  const file = await open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, ownFileMode);
  const writer = createSparseWriter(file, path);
  try {
    let position = 0;
    for await (const chunk of content) {
      signal.throwIfAborted();
      await writer.write(chunk, position);
      position += chunk.length;
    }
    await writer.finish();
    // Zeroes at the end were not written.
    await file.truncate(size);
    await file.chmod(mode | ownFileMode);
    await file.sync();
  } finally {
    await writer.settle();
    await file.close();
  }
};

const makeDirectory = async (path: string, mode: number): Promise<void> => {
  await mkdir(path, { recursive: true, mode: usualDirectoryMode });
  await chmod(path, mode | ownDirectoryMode);
};

const syncDirectories = async (path: string): Promise<void> => {
  for await (const entry of await opendir(path)) {
    if (entry.isDirectory() && entry.name !== ownOfFileSystem) await syncDirectories(join(path, entry.name));
  }
  await syncDirectory(path);
};

/** Files and directories below the path of the target. */
export const createTree = ({ path: root, volumeMode, capacityBytes }: TransferTarget): Tree => {
  if (volumeMode === 'Block')
    throw new TransferError('InvalidSpec', 'an archive is unpacked into a file system: volumeMode must be Filesystem');
  const empty = async (): Promise<void> => {
    const names = (await readdir(root)).filter((name) => name !== ownOfFileSystem);
    await Promise.all(names.map((name) => rm(join(root, name), { recursive: true, force: true })));
  };
  const place = async (entry: TarEntry, signal: AbortSignal): Promise<void> => {
    const { name, kind, mode } = entry;
    const path = join(root, name);
    // The replacement character means that the name is not UTF-8: the file would get another name, which may collide.
    if (name.includes('\uFFFD'))
      throw broken(`has a name that is not UTF-8: ${quoted(name)}; rename the file and pack it again`);
    if (kind === 'directory') return name === '' ? undefined : makeDirectory(path, mode);
    if (kind !== 'file') return refuseKind(entry);
    if (name === '') throw broken('has a file without a name');
    await mkdir(dirname(path), { recursive: true, mode: usualDirectoryMode });
    return writeFile(path, entry, signal);
  };
  return {
    prepare: () => writing(root, empty),
    unpack: async (entries, signal) => {
      let [bytes, count] = [0, 0];
      for await (const entry of entries) {
        signal.throwIfAborted();
        if (entry.kind === 'file') requireRoom(bytes + entry.size, capacityBytes);
        await writing(join(root, entry.name), () => placing(entry.name, () => place(entry, signal)));
        bytes += entry.kind === 'file' ? entry.size : 0;
        count += 1;
      }
      if (count === 0) throw new TransferError('UnsupportedFormat', 'the archive is empty');
      return bytes;
    },
    commit: () => writing(root, () => syncDirectories(root)),
    abandon: () => empty().catch(() => {}),
  };
};
