// The files a volume is handed out as, kept open between requests: to open one may take reading all of the volume.
import type { ExportFormat } from '#shared/transfer/export/format.ts';
import { type ExportFile, openExportFile } from '#shared/transfer/export/file.ts';

export interface Shelf {
  /** A file nobody else reads until it is put back. `undefined`: too many are being read. */
  take(form: ExportFormat): Promise<ExportFile | undefined>;
  putBack(form: ExportFormat, file: ExportFile): void;
  /** Instead of putting it back: its reading was broken off. */
  discard(file: ExportFile): Promise<void>;
  close(): Promise<void>;
}

export interface ShelfOptions {
  readonly path: string;
  readonly identity: string | undefined;
  readonly signal: AbortSignal;
}

/** Each has threads and buffers of its own: a pod has room for so many. */
const mostFiles = 4;

export const createShelf = (options: ShelfOptions): Shelf => {
  const idle: { readonly key: string; readonly file: ExportFile }[] = [];
  const opening = new Map<string, Promise<unknown>>();
  let taken = 0;

  const open = async (form: ExportFormat): Promise<ExportFile> => {
    // One of another form makes room.
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
      // Whoever comes back after a proxy timed out finds what was begun for him, and does not begin it again.
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
