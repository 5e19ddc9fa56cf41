// Keeps the files of a volume open between requests: opening one may require reading the whole volume.
import type { ExportFormat } from '#shared/transfer/export/format.ts';
import { type ExportFile, openExportFile } from '#shared/transfer/export/file.ts';

export interface Shelf {
  /** A file for exclusive use until it is put back. `undefined`: too many are in use. */
  take(form: ExportFormat): Promise<ExportFile | undefined>;
  putBack(form: ExportFormat, file: ExportFile): void;
  /** Instead of putting it back, after an interrupted read. */
  discard(file: ExportFile): Promise<void>;
  close(): Promise<void>;
}

export interface ShelfOptions {
  readonly path: string;
  readonly identity: string | undefined;
  readonly signal: AbortSignal;
}

/** Each has its own threads and buffers: limits the memory of the pod. */
const mostFiles = 4;

export const createShelf = (options: ShelfOptions): Shelf => {
  const idle: { readonly key: string; readonly file: ExportFile }[] = [];
  const opening = new Map<string, Promise<unknown>>();
  let taken = 0;

  const open = async (form: ExportFormat): Promise<ExportFile> => {
    // Closes an unused file of another format.
    if (taken + idle.length > mostFiles) await idle.shift()?.file.close();
    try {
      return await openExportFile({ ...options, form });
    } catch (error) {
      taken -= 1;
      throw error;
    }
  };
  return {
    take: async (form) => {
      const key = JSON.stringify(form);
      // A client that reconnects after the timeout of a proxy gets the file that is already being opened.
      await opening.get(key)?.catch(() => undefined);
      const at = idle.findIndex((kept) => kept.key === key);
      const [kept] = at < 0 ? [] : idle.splice(at, 1);
      if (kept === undefined && taken >= mostFiles) return undefined;
      taken += 1;
      if (kept !== undefined) return kept.file;
      const opened = open(form);
      opening.set(key, opened);
      try {
        return await opened;
      } finally {
        if (opening.get(key) === opened) opening.delete(key);
      }
    },
    putBack: (form, file) => {
      taken -= 1;
      idle.push({ key: JSON.stringify(form), file });
    },
    discard: async (file) => {
      taken -= 1;
      await file.close();
    },
    close: async () => {
      await Promise.all(idle.splice(0).map(({ file }) => file.close()));
    },
  };
};
