// How far a load has come that may be interrupted: beside the bundle, by target. Without it (the medium may be read-only), only whole blobs are kept.
import { createHash } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { parseJsonAs } from '#shared/runtime/json.ts';

const UploadNote = z.object({
  /** Where a registry takes the next bytes, or the upload of a store. */
  id: z.string(),
  /** SHA-256 of what is sent, where nothing else compares it: the bundle may be another one under the same name. */
  of: z.string().default(''),
  /** Of the parts of an object that are there. */
  etags: z.array(z.string()).default([]),
});
export type UploadNote = z.infer<typeof UploadNote>;
const State = z.record(z.string(), UploadNote);

export interface LoadState {
  get(key: string): UploadNote | undefined;
  set(key: string, upload: z.input<typeof UploadNote> | undefined): Promise<void>;
  /** All is done. */
  clear(): Promise<void>;
}

/** A process that is killed meanwhile leaves the old file. */
export const replaceFile = async (path: string, text: string): Promise<void> => {
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
};

const read = async (path: string): Promise<z.infer<typeof State>> =>
  parseJsonAs(State, await readFile(path, 'utf8').catch(() => undefined)) ?? {};

export const openState = async (bundle: string, target: string): Promise<LoadState> => {
  const path = `${bundle}.load-${createHash('sha256').update(target).digest('hex').slice(0, 12)}.json`;
  const uploads = new Map(Object.entries(await read(path)));
  return {
    get: (key) => uploads.get(key),
    set: async (key, upload) => {
      if (upload === undefined) uploads.delete(key);
      else uploads.set(key, UploadNote.parse(upload));
      await replaceFile(path, JSON.stringify(Object.fromEntries(uploads))).catch(() => undefined);
    },
    clear: () => rm(path, { force: true }).catch(() => undefined),
  };
};
