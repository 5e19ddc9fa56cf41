// What a folder store needs of the file system, and how it makes sure of a mount: an NFS server may have done what it says cannot be done.
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

/** Whether two names are of one file. */
export const areSame = async (files: FileSystem, a: string, b: string): Promise<boolean> => {
  const [one, other] = await Promise.all([a, b].map((path) => ifThere(() => files.stat(path))));
  return one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev;
};

/** `false`: the name is taken. A call that was sent again after its answer was lost finds the name taken by itself. */
export const linkNew = async (files: FileSystem, from: string, to: string): Promise<boolean> => {
  try {
    await files.link(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return areSame(files, from, to);
  }
};

/** File systems that cannot do so for folders have no need to. */
const unsyncable: readonly unknown[] = ['EINVAL', 'ENOTSUP', 'EISDIR', 'EPERM', 'EACCES'];

/** A name that was given survives a loss of power. */
export const syncFolder = async (files: FileSystem, folder: string): Promise<void> => {
  try {
    await using handle = await files.open(folder, 'r');
    await handle.sync();
  } catch (error) {
    if (!unsyncable.includes(codeOf(error))) throw error;
  }
};
