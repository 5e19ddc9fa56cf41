// File system operations of a folder store that allow for network mounts: an NFS server may have done what it reports as failed.
import * as node from 'node:fs/promises';

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

/** Whether two paths are the same file. */
export const areSame = async (files: FileSystem, a: string, b: string): Promise<boolean> => {
  const [one, other] = await Promise.all([a, b].map((path) => ifThere(() => files.stat(path))));
  return one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev;
};

/** `false`: the name is taken. A request that was resent after its answer was lost finds its own link. */
export const linkNew = async (files: FileSystem, from: string, to: string): Promise<boolean> => {
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
export const syncFolder = async (files: FileSystem, folder: string): Promise<void> => {
  try {
    await using handle = await files.open(folder, 'r');
    await handle.sync();
  } catch (error) {
    if (!unsyncable.includes(codeOf(error))) throw error;
  }
};
