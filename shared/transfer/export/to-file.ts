// A volume as a file in a mounted file system: written under another name, and observed under its own once it is whole.
import { createHash } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { type ExportFileOptions, openExportFile } from '#shared/transfer/export/file.ts';
import { writing } from '#shared/transfer/fault.ts';

export interface ExportToFile extends ExportFileOptions {
  /** Where the file is made. */
  readonly target: string;
  /** 0..1. */
  readonly onProgress: (fraction: number) => void;
}

export interface ExportedFile {
  readonly size: number;
  readonly virtualSize: number;
  readonly digests: { readonly sha256: string };
}

/** Throws TransferError, or the signal's reason; then nothing of it stays. */
export const exportToFile = async ({ target, onProgress, ...options }: ExportToFile): Promise<ExportedFile> => {
  const partial = `${target}.partial`;
  const source = await openExportFile(options);
  const hash = createHash('sha256');
  let size = 0;
  try {
    await writing(target, async () => {
      // What an earlier try left takes the room of this one.
      for (const old of [target, partial]) await rm(old, { force: true });
      const file = await open(partial, 'wx', 0o640);
      try {
        for await (const chunk of source.read()) {
          hash.update(chunk);
          await file.writeFile(chunk);
          size += chunk.length;
          onProgress(Math.min(1, size / (source.size ?? source.virtualSize)));
          options.signal.throwIfAborted();
        }
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(partial, target);
    });
    return { size, virtualSize: source.virtualSize, digests: { sha256: hash.digest('hex') } };
  } catch (error) {
    await rm(partial, { force: true }).catch(() => {});
    options.signal.throwIfAborted();
    throw error;
  } finally {
    await source.close();
  }
};
