// Atomic conditional writes into a folder. A file system cannot compare and replace in one step, so the writer holds a lock: a second link to
// its draft, which only one writer can create, on NFS too.
import { createHash, randomUUID } from 'node:crypto';
import * as node from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Expected } from './store.ts';
import { Conflict, Unavailable } from '#shared/runtime/errors.ts';

// File system operations of a folder store that allow for network mounts: an NFS server may have done what it reports as failed.

export type FileSystem = Pick<
  typeof node,
  'link' | 'mkdir' | 'open' | 'readFile' | 'readdir' | 'rename' | 'stat' | 'unlink'
>;
export const fileSystem: FileSystem = node;

export const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined);

const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR';

export const ifThere = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await work();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
};

const areSame = async (files: FileSystem, a: string, b: string): Promise<boolean> => {
  const [one, other] = await Promise.all([a, b].map((path) => ifThere(() => files.stat(path))));
  return one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev;
};

/** `false`: the name is taken. A request that was resent after its answer was lost finds its own link. */
const linkNew = async (files: FileSystem, from: string, to: string): Promise<boolean> => {
  try {
    await files.link(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return areSame(files, from, to);
  }
};

/** File systems that do not support this for folders do not need it. */
const unsyncable: readonly unknown[] = ['EINVAL', 'ENOTSUP', 'EISDIR', 'EPERM', 'EACCES'];

/** Makes a new name durable across a power failure. */
const syncFolder = async (files: FileSystem, folder: string): Promise<void> => {
  try {
    await using handle = await files.open(folder, 'r');
    await handle.sync();
  } catch (error) {
    if (!unsyncable.includes(codeOf(error))) throw error;
  }
};

/** Prefix of drafts, which are never listed. */
export const draftPrefix = '.draft-';

/** Milliseconds after which a lock belongs to a dead writer. */
const staleMs = 60_000;
/** Milliseconds for which a writer may hold the lock. */
const holdMs = 30_000;
/** Number of attempts to get the lock of another writer, and milliseconds between them. */
const looks = 40;
const pollMs = 50;

export const revisionOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

interface FolderWrite {
  readonly files: FileSystem;
  readonly key: string;
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly expected?: Expected | undefined;
}

type Writing = FolderWrite & { readonly draft: string };

/** Synced to disk before it gets its name. */
const writeDraft = async ({ files, path, bytes }: FolderWrite): Promise<string> => {
  await files.mkdir(dirname(path), { recursive: true });
  const draft = join(dirname(path), `${draftPrefix}${randomUUID()}`);
  const file = await files.open(draft, 'wx', 0o640);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } catch (error) {
    await drop(files, draft);
    throw error;
  } finally {
    await file.close();
  }
  return draft;
};

const drop = (files: FileSystem, path: string): Promise<void> => files.unlink(path).catch(() => {});

/** A request that was resent after its answer was lost finds nothing to rename: the existing file is compared. */
const takeName = async ({ files, path, draft, bytes }: Writing): Promise<void> => {
  try {
    await files.rename(draft, path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    const present = await ifThere(() => files.readFile(path));
    if (present === undefined || revisionOf(present) !== revisionOf(bytes)) throw error;
  }
};

const lockOf = (path: string): string => join(dirname(path), `${draftPrefix}lock-${basename(path)}`);

/** A stale lock is renamed first, so that only the inspected lock is removed. */
const breakStale = async ({ files, path, draft }: Writing): Promise<void> => {
  const lock = lockOf(path);
  const [held, own] = [await ifThere(() => files.stat(lock)), await files.stat(draft)];
  // Both times come from the server.
  if (held === undefined || own.mtimeMs - held.mtimeMs < staleMs) return;
  const aside = join(dirname(path), `${draftPrefix}${randomUUID()}`);
  if ((await ifThere(() => files.rename(lock, aside).then(() => true))) === undefined) return;
  const taken = await ifThere(() => files.stat(aside));
  // Another writer was faster, and this is the lock of a third one, which checks it before it writes.
  if (taken !== undefined && taken.ino !== held.ino) await linkNew(files, aside, lock);
  await drop(files, aside);
};

const lock = async (writing: Writing): Promise<void> => {
  const { files, path, draft, key } = writing;
  for (let look = 0; look < looks; look += 1) {
    if (await linkNew(files, draft, lockOf(path))) return;
    await breakStale(writing);
    await delay(pollMs);
  }
  throw new Unavailable(`${key} is being written by another client`);
};

const replace = async (writing: Writing, revision: string): Promise<void> => {
  const { files, path, draft, key } = writing;
  await lock(writing);
  const since = performance.now();
  try {
    const present = await ifThere(() => files.readFile(path));
    if (present === undefined || revisionOf(present) !== revision)
      throw new Conflict(`${key} has been changed by another client`);
    if (!(await areSame(files, draft, lockOf(path))) || performance.now() - since > holdMs)
      throw new Unavailable(`${key} could not be written in time`);
    await takeName(writing);
  } finally {
    // By now the file itself may have the second link.
    if ((await areSame(files, draft, lockOf(path))) || (await areSame(files, path, lockOf(path))))
      await drop(files, lockOf(path));
  }
};

const publish = async (writing: Writing): Promise<void> => {
  const { files, path, draft, key, expected } = writing;
  if (expected === undefined) return takeName(writing);
  if (expected !== 'nothing') return replace(writing, expected.revision);
  if (!(await linkNew(files, draft, path))) throw new Conflict(`${key} already exists`);
  await drop(files, draft);
};

/** Returns the revision. Throws errors of the file system, Conflict, or Unavailable. */
export const writeFile = async (write: FolderWrite): Promise<string> => {
  const draft = await writeDraft(write);
  try {
    await publish({ ...write, draft });
  } catch (error) {
    await drop(write.files, draft);
    throw error;
  }
  await syncFolder(write.files, dirname(write.path));
  return revisionOf(write.bytes);
};
