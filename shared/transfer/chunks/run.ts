// Runs a backup transfer: executes the spec and reports the result. Loaded by run.ts on demand.
import { createBucketStore } from '#shared/clients/store/bucket.ts';
import { createFolderStore } from '#shared/clients/store/folder.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { writeChunks } from '#shared/transfer/chunks/write.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { Meter } from '#shared/transfer/meter.ts';
import type { PassResult } from '#shared/transfer/pass.ts';
import { openStore } from '#shared/transfer/source/access.ts';
import type { BackupRequest, TransferSpec } from '#shared/transfer/spec.ts';

export interface BackupContext {
  readonly signal: AbortSignal;
  readonly meter: Meter;
  readonly onRetry: (error: unknown, waitMs: number) => void;
}

interface Opened {
  readonly store: Store;
  readonly close: () => Promise<void>;
}

const openInto = async ({ into }: BackupRequest, spec: TransferSpec, signal: AbortSignal): Promise<Opened> => {
  if (into.type === 'folder') return { store: createFolderStore(into.dir), close: () => Promise.resolve() };
  const { s3, close } = await openStore(into, 'write', spec);
  return { store: createBucketStore(s3, into.bucket, signal), close };
};

/** Throws TransferError, InvalidInput or the reason of the signal. */
export const runBackup = async (spec: TransferSpec, { signal, meter, onRetry }: BackupContext): Promise<PassResult> => {
  const { backup, source, limits } = spec;
  if (backup === undefined || source.type !== 'volume')
    throw new TransferError('InvalidSpec', 'mode backup needs `backup`, and a volume as source');
  const { store, close } = await openInto(backup, spec, signal);
  try {
    meter.enter('Converting', 99);
    const onProgress = (fraction: number) => meter.advance(fraction);
    const backOff = { retries: limits.retries, onRetry };
    const { size, ...made } = await writeChunks({
      path: source.path,
      store,
      prefix: backup.into.key,
      backOff,
      signal,
      onProgress,
    });
    return {
      inspection: { format: 'raw', compression: 'none', size, virtualSize: size },
      digests: {},
      writtenBytes: made.sentBytes,
      backup: made,
    };
  } finally {
    await close();
  }
};
