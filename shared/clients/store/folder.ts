// A folder as a Store: an NFS export that is mounted here. Keys are paths below it.
import { createHash, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Expected, Store } from '#shared/clients/store/store.ts';
import { Conflict, InvalidInput, Unavailable, messageOf } from '#shared/runtime/errors.ts';

/** Beginning of the names of what is being written. Nothing lists it. */
const draftPrefix = '.draft-';

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined);

const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR';

const pathOf = (root: string, key: string): string => {
  if (key.split('/').some((part) => part === '' || part === '.' || part === '..'))
    throw new InvalidInput(`"${key}" is no key of a folder`);
  return join(root, key);
};

/** What the file system says is the mount's trouble, and may pass. */
const asked = async <T>(key: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) === undefined || 'retryable' in (error as object)) throw error;
    throw new Unavailable(`${key}: the mounted folder does not take part: ${messageOf(error)}`, { cause: error });
  }
};

const ifThere = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await work();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
};

const revisionOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** On disk before it has its name. */
const writeDraft = async (path: string, bytes: Uint8Array): Promise<string> => {
  await mkdir(dirname(path), { recursive: true });
  const draft = join(dirname(path), `${draftPrefix}${randomUUID()}`);
  const file = await open(draft, 'wx', 0o640);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } catch (error) {
    await unlink(draft).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
  return draft;
};

/** A folder cannot compare and replace in one step: between the look and the rename another writer of the same key may be lost. */
const publish = async (path: string, draft: string, key: string, expected: Expected | undefined): Promise<void> => {
  if (expected === 'nothing') {
    await link(draft, path).catch((error: unknown) => {
      throw codeOf(error) === 'EEXIST' ? new Conflict(`${key} is there already`) : error;
    });
    return unlink(draft);
  }
  if (expected !== undefined) {
    const present = await ifThere(() => readFile(path));
    if (present === undefined || revisionOf(present) !== expected.revision)
      throw new Conflict(`${key} is another one by now`);
  }
  await rename(draft, path);
};

async function* walk(root: string, folder: string): AsyncGenerator<{ key: string; size: number }, void, undefined> {
  const read = () => ifThere(() => readdir(join(root, folder), { withFileTypes: true }));
  const entries = (await asked(folder, read)) ?? [];
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const key = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* walk(root, key);
    else if (entry.isFile() && !entry.name.startsWith(draftPrefix)) {
      const found = await asked(key, () => ifThere(() => stat(join(root, key))));
      if (found !== undefined) yield { key, size: found.size };
    }
  }
}

/** `root` must be there: an export that is not mounted is not an empty one. */
export const createFolderStore = (root: string): Store => ({
  read: (key, mostBytes) =>
    asked(key, async () => {
      await stat(root);
      const path = pathOf(root, key);
      const size = await ifThere(() => stat(path));
      if (size !== undefined && size.size > mostBytes)
        throw new InvalidInput(`${key} has ${size.size} bytes, more than the ${mostBytes} it may have`);
      const bytes = await ifThere(() => readFile(path));
      return bytes === undefined ? undefined : { bytes, revision: revisionOf(bytes) };
    }),
  sizeOf: (key) =>
    asked(key, async () => {
      await stat(root);
      return (await ifThere(() => stat(pathOf(root, key))))?.size;
    }),
  write: (key, bytes, expected) =>
    asked(key, async () => {
      await stat(root);
      const path = pathOf(root, key);
      const draft = await writeDraft(path, bytes);
      try {
        await publish(path, draft, key, expected);
      } catch (error) {
        await unlink(draft).catch(() => {});
        throw error;
      }
      return revisionOf(bytes);
    }),
  remove: (key) =>
    asked(key, async () => {
      await stat(root);
      await ifThere(() => unlink(pathOf(root, key)));
    }),
  list: async function* list(prefix) {
    await asked(prefix, () => stat(root));
    const folder = prefix.replace(/\/[^/]*$/, '');
    for await (const entry of walk(root, folder)) if (entry.key.startsWith(prefix)) yield entry;
  },
});
