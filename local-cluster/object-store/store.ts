// Buckets and objects on disk: read and changed by the operations of the server. Changes of one store are serialized.
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import {
  BucketInfo,
  type BucketPaths,
  Entry,
  Upload,
  listFolder,
  makeBucketFolders,
  newId,
  pathsOf,
  readAll,
  readJson,
  sweep,
  writeJson,
} from '#local-cluster/object-store/disk.ts';
import { StoreFault } from '#local-cluster/object-store/fault.ts';

/** Checks the current entry; throws to keep it. */
export type Condition = (present: Entry | undefined) => void;

export interface Store {
  buckets(): Promise<readonly (BucketInfo & { readonly name: string })[]>;
  /** Throws NoSuchBucket. */
  bucket(name: string): Promise<BucketInfo>;
  /** Also sets whether anonymous users may read it. Throws BucketAlreadyOwnedByYou if it exists and `isNew`. */
  putBucket(name: string, options: { readonly isPublic: boolean; readonly isNew: boolean }): Promise<void>;
  /** Throws BucketNotEmpty. */
  deleteBucket(name: string): Promise<void>;
  /** Throws NoSuchBucket. */
  entries(bucket: string): Promise<readonly Entry[]>;
  entry(bucket: string, key: string): Promise<Entry | undefined>;
  /** The entry and its open file: the bytes stay readable if the object is replaced meanwhile. */
  open(bucket: string, key: string): Promise<{ readonly entry: Entry; readonly file: FileHandle } | undefined>;
  putEntry(bucket: string, entry: Entry, condition: Condition): Promise<void>;
  deleteEntry(bucket: string, key: string): Promise<void>;
  /** A new file for bytes; call `drop` if it will not be referenced. */
  newBlob(bucket: string): { readonly id: string; readonly path: string };
  blobPath(bucket: string, id: string): string;
  dropBlob(bucket: string, id: string): Promise<void>;
  uploads(bucket: string): Promise<readonly Upload[]>;
  /** Throws NoSuchUpload. */
  upload(bucket: string, key: string, id: string): Promise<Upload>;
  putUpload(bucket: string, upload: Upload): Promise<void>;
  /** Parts have their number as key. */
  parts(bucket: string, uploadId: string): Promise<readonly Entry[]>;
  putPart(bucket: string, uploadId: string, part: Entry): Promise<void>;
  /** With all its parts. */
  deleteUpload(bucket: string, uploadId: string): Promise<void>;
}

const noUpload = (): StoreFault =>
  new StoreFault('NoSuchUpload', 'the upload does not exist, or was completed or aborted');

const bucketName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const uploadId = /^[0-9a-f-]{36}$/;

export const createStore = async (root: string): Promise<Store> => {
  await mkdir(root, { recursive: true, mode: 0o700 });
  await sweep(root);
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(change: () => Promise<T>): Promise<T> => {
    const turn = last.then(change);
    last = turn.catch(() => {});
    return turn;
  };
  const pathsIn = (bucket: string): BucketPaths => {
    if (!bucketName.test(bucket)) throw new StoreFault('InvalidBucketName', 'that is not a valid bucket name');
    return pathsOf(root, bucket);
  };
  const find = async (bucket: string): Promise<BucketPaths> => {
    const paths = pathsIn(bucket);
    if ((await readJson(paths.info, BucketInfo)) === undefined) {
      throw new StoreFault('NoSuchBucket', 'the bucket does not exist', { details: { BucketName: bucket } });
    }
    return paths;
  };
  const readEntry = async (bucket: string, key: string) => readJson((await find(bucket)).key(key), Entry);
  const dropBlob = (bucket: string, id: string) => rm(pathsIn(bucket).blob(id), { force: true });
  const dropUpload = async (bucket: string, id: string): Promise<void> => {
    const paths = pathsIn(bucket);
    const parts = await readAll(paths.parts(id), Entry);
    await rm(paths.upload(id), { recursive: true, force: true });
    for (const { blob } of parts) await dropBlob(bucket, blob);
  };
  return {
    buckets: async () => {
      const found: (BucketInfo & { name: string })[] = [];
      for (const name of await listFolder(root)) {
        const info = await readJson(pathsOf(root, name).info, BucketInfo);
        if (info !== undefined) found.push({ name, ...info });
      }
      return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },
    bucket: async (name) => (await readJson((await find(name)).info, BucketInfo)) as BucketInfo,
    putBucket: (name, { isPublic, isNew }) =>
      inTurn(async () => {
        const paths = pathsIn(name);
        const present = await readJson(paths.info, BucketInfo);
        if (present !== undefined && isNew)
          throw new StoreFault('BucketAlreadyOwnedByYou', 'the bucket exists and is yours');
        await makeBucketFolders(paths);
        await writeJson(paths.info, { created: present?.created ?? new Date().toISOString(), isPublic });
      }),
    deleteBucket: (name) =>
      inTurn(async () => {
        const paths = await find(name);
        if ((await readAll(paths.keys, Entry)).length > 0)
          throw new StoreFault('BucketNotEmpty', 'the bucket holds objects');
        await rm(paths.info);
        await rm(paths.folder, { recursive: true, force: true });
      }),
    entries: async (bucket) => readAll((await find(bucket)).keys, Entry),
    entry: readEntry,
    open: async (bucket, key) => {
      for (;;) {
        const entry = await readEntry(bucket, key);
        if (entry === undefined) return undefined;
        const file = await open(pathsIn(bucket).blob(entry.blob)).catch(() => undefined);
        if (file !== undefined) return { entry, file };
        // Replaced between the two reads; an entry whose bytes are permanently missing is a damaged store.
        if ((await readEntry(bucket, key))?.blob === entry.blob) throw new Error(`bytes of ${entry.blob} are missing`);
      }
    },
    putEntry: (bucket, entry, condition) =>
      inTurn(async () => {
        const paths = await find(bucket);
        const before = await readJson(paths.key(entry.key), Entry);
        condition(before);
        await writeJson(paths.key(entry.key), entry);
        if (before !== undefined) await dropBlob(bucket, before.blob);
      }),
    deleteEntry: (bucket, key) =>
      inTurn(async () => {
        const paths = await find(bucket);
        const before = await readJson(paths.key(key), Entry);
        await rm(paths.key(key), { force: true });
        if (before !== undefined) await dropBlob(bucket, before.blob);
      }),
    newBlob: (bucket) => {
      const id = newId();
      return { id, path: pathsIn(bucket).blob(id) };
    },
    blobPath: (bucket, id) => pathsIn(bucket).blob(id),
    dropBlob,
    uploads: async (bucket) => {
      const paths = await find(bucket);
      const found = await Promise.all(
        (await listFolder(paths.uploads)).map((id) => readJson(paths.uploadInfo(id), Upload)),
      );
      return found.filter((upload) => upload !== undefined);
    },
    upload: async (bucket, key, id) => {
      const paths = await find(bucket);
      const found = uploadId.test(id) ? await readJson(paths.uploadInfo(id), Upload) : undefined;
      if (found?.key !== key) throw noUpload();
      return found;
    },
    putUpload: async (bucket, upload) => {
      const paths = await find(bucket);
      try {
        await mkdir(paths.parts(upload.id), { recursive: true, mode: 0o700 });
        await writeJson(paths.uploadInfo(upload.id), upload);
      } catch (error) {
        // On a full disk: otherwise an unreferenced folder would remain.
        await rm(paths.upload(upload.id), { recursive: true, force: true });
        throw error;
      }
    },
    parts: async (bucket, id) =>
      [...(await readAll(pathsIn(bucket).parts(id), Entry))].sort((a, b) => Number(a.key) - Number(b.key)),
    putPart: (bucket, id, part) =>
      inTurn(async () => {
        const paths = pathsIn(bucket);
        if ((await readJson(paths.uploadInfo(id), Upload)) === undefined) throw noUpload();
        const path = paths.part(id, Number(part.key));
        const before = await readJson(path, Entry);
        await writeJson(path, part);
        if (before !== undefined) await dropBlob(bucket, before.blob);
      }),
    deleteUpload: (bucket, id) => inTurn(() => dropUpload(bucket, id)),
  };
};
