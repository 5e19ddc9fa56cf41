// An upload from the side of its Job: a spool, a server that fills it, a source that reads it. Opened by transfer-job around a transfer.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Failure } from '#shared/transfer/failure.ts';
import type { TransferReport } from '#shared/transfer/report.ts';
import type { ByteSource } from '#shared/transfer/source/source.ts';
import type { UploadSource } from '#shared/transfer/spec.ts';
import { createTokenChecker } from '#shared/transfer/upload/keys.ts';
import { createReceiver } from '#shared/transfer/upload/receiver.ts';
import { startUploadServer } from '#shared/transfer/upload/server.ts';
import { type UploadSourceOptions, createUploadSource } from '#shared/transfer/upload/source.ts';
import { openSpool } from '#shared/transfer/upload/spool.ts';

/** Milliseconds for clients to read the result. */
const partingMs = 10_000;
/** Milliseconds for a client that sends a file in pieces to send the next one; without this it would not learn about the failure. */
const nextPieceMs = 5000;

export interface Reception {
  readonly openSource: (context: Pick<UploadSourceOptions, 'signal' | 'onWait'>) => ByteSource;
  /**
   * Reports to clients that their file cannot become the disk. True: another file is expected now; false: the caller ends the transfer with
   * `finish`.
   */
  readonly refuse: (failure: Failure) => Promise<boolean>;
  /** Reports to clients, then ends. Received bytes stay in the directory if another attempt may need them. */
  readonly finish: (report: TransferReport) => Promise<void>;
}

export interface ReceptionOptions {
  readonly source: UploadSource;
  readonly scratchDir: string;
  /** Size limit of the disk in bytes. */
  readonly limitBytes?: number | undefined;
  /** Address to listen on. */
  readonly host: string;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Throws errors of listening: the port is in use, or the address is not local. */
export const openReception = async (options: ReceptionOptions): Promise<Reception> => {
  const { source, scratchDir, limitBytes, host, log } = options;
  const directory = join(source.dir ?? scratchDir, 'upload');
  const spool = await openSpool(directory);
  const receiver = createReceiver(spool);
  const checker = createTokenChecker(source.keysUrl);
  const server = await startUploadServer({
    receiver,
    host,
    port: source.port,
    checker,
    subject: source.subject,
    limitBytes,
    log,
  });
  log('waiting for an upload', { port: server.port, offset: spool.offset(), isComplete: spool.isComplete() });
  /** Appended to the status while the next file is awaited. */
  let afterwards = '';
  return {
    openSource: (context) =>
      createUploadSource({
        ...context,
        onWait: (text) => context.onWait(text === undefined ? text : `${text}${afterwards}`),
        spool,
        idleMs: source.idleSeconds * 1000,
        pauseMs: (source.pauseSeconds ?? source.idleSeconds) * 1000,
      }),
    refuse: async (failure) => {
      if (spool.announced()?.maybeFollowed !== true) return false;
      const report = { outcome: 'failed', ...failure, receivedBytes: spool.offset() } as const;
      log('the file was refused', { ...failure });
      afterwards = `; the previous file was refused: ${failure.message}`;
      return receiver.refuse(report, nextPieceMs);
    },
    finish: async (report) => {
      receiver.finish(report);
      const isOver = report.outcome === 'succeeded' || !report.retryable;
      const isAmidPieces = !spool.isComplete() && spool.offset() > 0;
      if (isOver && isAmidPieces)
        await Promise.race([receiver.reported(), delay(nextPieceMs, undefined, { ref: false })]);
      await server.close(partingMs);
      await spool.close();
      if (isOver) await rm(directory, { recursive: true, force: true });
    },
  };
};
