// A folder as a Store: a mounted NFS export. Keys are paths below it.
import { basename, join } from 'node:path';
import { codeOf, draftPrefix, fileSystem, type FileSystem, ifThere, revisionOf, writeFile } from './folder-write.ts';
import type { ListedObject, Store } from '#shared/clients/store/store.ts';
import { InvalidInput, Unavailable, messageOf } from '#shared/runtime/errors.ts';

const pathOf = (root: string, key: string): string => {
  if (key.split('/').some((part) => part === '' || part === '.' || part === '..'))
    throw new InvalidInput(`"${key}" is not a valid key of a file`);
  return join(root, key);
};

/** Another client replaced a file while its name was resolved: the name is resolved again. */
const rounds = 3;

/** Errors of the file system come from the mount and may be transient. */
const asked = async <T>(key: string, work: () => Promise<T>): Promise<T> => {
  for (let round = 1; ; round += 1) {
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) === 'ESTALE' && round < rounds) continue;
      if (codeOf(error) === undefined || 'retryable' in (error as object)) throw error;
      throw new Unavailable(`${key}: the mounted folder cannot be used: ${messageOf(error)}`, { cause: error });
    }
  }
};

/** Every file, including drafts. */
async function* walk(files: FileSystem, root: string, folder: string): AsyncGenerator<ListedObject, void, undefined> {
  const read = () => ifThere(() => files.readdir(join(root, folder), { withFileTypes: true }));
  const entries = (await asked(folder, read)) ?? [];
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const key = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* walk(files, root, key);
    else if (entry.isFile()) {
      const found = await asked(key, () => ifThere(() => files.stat(join(root, key))));
      if (found !== undefined) yield { key, size: found.size, modified: found.mtimeMs };
    }
  }
}

const isDraft = ({ key }: ListedObject): boolean => basename(key).startsWith(draftPrefix);

async function* below(files: FileSystem, root: string, prefix: string): AsyncGenerator<ListedObject, void, undefined> {
  await asked(prefix, () => files.stat(root));
  const folder = prefix.replace(/\/[^/]*$/, '');
  for await (const entry of walk(files, root, folder)) if (entry.key.startsWith(prefix)) yield entry;
}

/** `root` must exist: an export that is not mounted is not an empty one. `files`: for tests of faulty mounts. */
export const createFolderStore = (root: string, files: FileSystem = fileSystem): Store => ({
  read: (key, mostBytes) =>
    asked(key, async () => {
      await files.stat(root);
      const path = pathOf(root, key);
      const size = await ifThere(() => files.stat(path));
      if (size !== undefined && size.size > mostBytes)
        throw new InvalidInput(`${key} has ${size.size} bytes, more than the limit of ${mostBytes}`);
      const bytes = await ifThere(() => files.readFile(path));
      return bytes === undefined ? undefined : { bytes, revision: revisionOf(bytes) };
    }),
  sizeOf: (key) =>
    asked(key, async () => {
      await files.stat(root);
      return (await ifThere(() => files.stat(pathOf(root, key))))?.size;
    }),
  write: (key, bytes, expected) =>
    asked(key, async () => {
      await files.stat(root);
      return writeFile({ files, key, path: pathOf(root, key), bytes, expected });
    }),
  remove: (key) =>
    asked(key, async () => {
      await files.stat(root);
      await ifThere(() => files.unlink(pathOf(root, key)));
    }),
  list: async function* list(prefix) {
    for await (const entry of below(files, root, prefix)) if (!isDraft(entry)) yield entry;
  },
  tidy: async (prefix, before) => {
    for await (const entry of below(files, root, prefix))
      if (isDraft(entry) && entry.modified < before)
        await asked(entry.key, () => ifThere(() => files.unlink(join(root, entry.key))));
  },
});
