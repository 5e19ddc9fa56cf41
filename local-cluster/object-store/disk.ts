// The state of the object store as files: every change renames a complete file, so that a reader, or a start after a crash, sees all of it or
// nothing. Layout: `<bucket>/bucket.json`, `keys/<hash of key>.json`, `blobs/<id>`, `uploads/<id>/…`.
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

/** One object, or one part of an upload: its metadata, and the file with its bytes. */
export const Entry = z.object({
  key: z.string(),
  blob: z.string(),
  size: z.number(),
  /** Without quotes. */
  etag: z.string(),
  /** RFC 3339. */
  modified: z.string(),
  checksum: z.object({ algorithm: z.string(), value: z.string() }).optional(),
  /** Headers that were stored with it and are returned with it. */
  headers: z.record(z.string(), z.string()),
});
export type Entry = z.infer<typeof Entry>;

export const BucketInfo = z.object({ created: z.string(), isPublic: z.boolean() });
export type BucketInfo = z.infer<typeof BucketInfo>;

export const Upload = z.object({
  id: z.string(),
  key: z.string(),
  started: z.string(),
  headers: z.record(z.string(), z.string()),
});
export type Upload = z.infer<typeof Upload>;

const isAbsent = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ENOENT';

/** `undefined` if the file does not exist. */
export const readJson = async <S extends z.ZodType>(path: string, schema: S): Promise<z.output<S> | undefined> => {
  try {
    return schema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
};

const syncFolder = async (path: string): Promise<void> => {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
};

/** Replaces the file atomically; flushed before it returns. */
export const writeJson = async (path: string, value: unknown): Promise<void> => {
  const draft = `${path}.${randomUUID()}.part`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(JSON.stringify(value));
    await file.sync();
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  await syncFolder(join(path, '..'));
};

export const listFolder = async (path: string): Promise<readonly string[]> => {
  try {
    return await readdir(path);
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
};

/** Every valid document of a folder; drafts are skipped. */
export const readAll = async <S extends z.ZodType>(folder: string, schema: S): Promise<readonly z.output<S>[]> => {
  const names = (await listFolder(folder)).filter((name) => name.endsWith('.json'));
  const found: z.output<S>[] = [];
  for (const name of names) {
    const value = await readJson(join(folder, name), schema);
    if (value !== undefined) found.push(value);
  }
  return found;
};

/** Paths below one bucket's folder. */
export const pathsOf = (root: string, bucket: string) => {
  const folder = join(root, bucket);
  return {
    folder,
    info: join(folder, 'bucket.json'),
    keys: join(folder, 'keys'),
    key: (key: string) => join(folder, 'keys', `${createHash('sha256').update(key).digest('hex')}.json`),
    blob: (id: string) => join(folder, 'blobs', id),
    uploads: join(folder, 'uploads'),
    upload: (id: string) => join(folder, 'uploads', id),
    uploadInfo: (id: string) => join(folder, 'uploads', id, 'upload.json'),
    parts: (id: string) => join(folder, 'uploads', id, 'parts'),
    part: (id: string, number: number) => join(folder, 'uploads', id, 'parts', `${number}.json`),
  };
};
export type BucketPaths = ReturnType<typeof pathsOf>;

export const newId = (): string => randomUUID();

export const makeBucketFolders = async ({ folder, keys, uploads }: BucketPaths): Promise<void> => {
  for (const path of [folder, keys, uploads, join(folder, 'blobs')])
    await mkdir(path, { recursive: true, mode: 0o700 });
};

/** Removes leftovers of a crash: drafts, uploads that never started or have ended, and unreferenced bytes. */
export const sweep = async (root: string): Promise<void> => {
  for (const bucket of await listFolder(root)) {
    const paths = pathsOf(root, bucket);
    const entries = [...(await readAll(paths.keys, Entry))];
    for (const upload of await listFolder(paths.uploads)) {
      if ((await readJson(paths.uploadInfo(upload), Upload)) === undefined)
        await rm(paths.upload(upload), { recursive: true, force: true });
    }
    for (const upload of await listFolder(paths.uploads)) entries.push(...(await readAll(paths.parts(upload), Entry)));
    const used = new Set(entries.map(({ blob }) => blob));
    for (const blob of await listFolder(join(paths.folder, 'blobs'))) {
      if (!used.has(blob)) await rm(paths.blob(blob), { force: true });
    }
    for (const name of await listFolder(paths.keys)) {
      if (name.endsWith('.part')) await rm(join(paths.keys, name), { force: true });
    }
  }
};
