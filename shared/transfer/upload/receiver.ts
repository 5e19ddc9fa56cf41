// Receives an upload: writes bytes into the spool, from one client at a time, and reports the result to clients.
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Readable } from 'node:stream';
import type { TransferReport } from '#shared/transfer/report.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { TransferError, isTransferError } from '#shared/transfer/fault.ts';
import type { Announcement, Spool } from '#shared/transfer/upload/spool.ts';

export interface UploadDelivery {
  /** Starts a new file, and discards another one. Default: resumes the announced one. */
  readonly begins?: Announcement | undefined;
  /** Position of the bytes in the file. */
  readonly offset: number;
  /** The file ends with these bytes. Implied if they reach its length. */
  readonly isLast: boolean;
  /** A client that reconnects may replace its own earlier connection, which may not have noticed that it is dead. */
  readonly takesOver: boolean;
  readonly body: Readable;
}

/**
 * - `taken`: on disk. `whole`: the file is complete.
 * - `misplaced`: wrong position; resume at `offset`.
 * - `busy`: another client is sending. `closed`: all bytes have arrived already.
 * - `interrupted`: the client disconnected.
 * - `refused`: the file cannot become the disk, or differs from its announcement.
 * - `ended`: this Job accepts no more bytes, for a reason unrelated to the file; another Job replaces it.
 */
export type Taken =
  | { readonly is: 'taken'; readonly offset: number; readonly whole: boolean }
  | { readonly is: 'misplaced' | 'busy' | 'closed' | 'interrupted'; readonly offset: number }
  | { readonly is: 'refused' | 'ended'; readonly offset: number; readonly reason: string; readonly message: string };

export interface Receiver {
  readonly spool: Pick<Spool, 'offset' | 'length' | 'isComplete' | 'announced'>;
  take(delivery: UploadDelivery): Promise<Taken>;
  /** The result of the transfer that reads the spool. */
  report(): Promise<TransferReport>;
  /** Reports the result to all clients; after a failure they are rejected. */
  finish(report: TransferReport): void;
  /**
   * Like `finish`; the file is discarded once a client has received the failure, and another one is accepted. False if no client asks within
   * `waitMs`.
   */
  refuse(report: TransferReport, waitMs: number): Promise<boolean>;
  /** A client has received the report. */
  markReported(): void;
  /** Resolves once a client has received the failure that was passed to `finish`. */
  reported(): Promise<void>;
}

const digestOf = async (spool: Spool, algorithm: string): Promise<string> => {
  const hash = createHash(algorithm);
  const chunk = Buffer.alloc(4 * 1024 * 1024);
  for (let at = 0; at < spool.offset(); at += chunk.length) {
    const part = chunk.subarray(0, Math.min(chunk.length, spool.offset() - at));
    await spool.readInto(at, part);
    hash.update(part);
  }
  return hash.digest('hex');
};

const refusal = (spool: Spool, reason: string, message: string): Taken => ({
  is: 'refused',
  offset: spool.offset(),
  reason,
  message,
});

const interrupted = (spool: Spool): Taken => ({ is: 'interrupted', offset: spool.offset() });

/** Separate for each wait: a shared promise would retain every chunk until the last. */
const unlessStopped = <T>(work: Promise<T>, stop: AbortSignal): Promise<T | 'stopped'> =>
  new Promise((resolve, reject) => {
    const onStop = (): void => resolve('stopped');
    stop.addEventListener('abort', onStop, { once: true });
    void work.then(resolve, reject).finally(() => stop.removeEventListener('abort', onStop));
  });

/** Writes into the spool until the body ends or `stop` fires: then the rest is left unread, because an answer must still be sent. */
const pour = async (spool: Spool, { body }: UploadDelivery, stop: AbortSignal): Promise<Taken | undefined> => {
  const length = spool.length();
  const chunks = body.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer, undefined>;
  try {
    for (;;) {
      if (stop.aborted) return interrupted(spool);
      // Sequential: each chunk is being written before the next one is read.
      const next = await unlessStopped(chunks.next(), stop);
      if (next === 'stopped' || stop.aborted) return interrupted(spool);
      if (next.done === true) return undefined;
      if (length !== undefined && spool.offset() + next.value.length > length) {
        return refusal(spool, 'ImageTruncated', `more bytes arrived than the ${length} that were announced`);
      }
      await spool.append(next.value);
    }
  } catch (error) {
    return isTransferError(error) ? refusal(spool, error.code, error.message) : interrupted(spool);
  }
};

/** A file with another digest than announced is discarded: it cannot be repaired. */
const finish = async (spool: Spool): Promise<Taken> => {
  const [offset, length, announced] = [spool.offset(), spool.length(), spool.announced()];
  const checksum = announced?.checksum;
  if (length !== undefined && offset !== length) {
    return refusal(spool, 'ImageTruncated', `only ${offset} of the ${length} announced bytes arrived`);
  }
  const found = checksum === undefined ? undefined : await digestOf(spool, checksum.algorithm);
  if (announced !== undefined && checksum !== undefined && found !== checksum.hex) {
    await spool.begin(announced);
    const message = `${checksum.algorithm} of what arrived is ${found}, expected ${checksum.hex}; upload it again`;
    return refusal(spool, 'ChecksumMismatch', message);
  }
  await spool.complete();
  return { is: 'taken', offset, whole: true };
};

/** `isRefused`: the transfer failed permanently. */
const receive = async (
  spool: Spool,
  delivery: UploadDelivery,
  stop: AbortSignal,
  isRefused: () => boolean,
): Promise<Taken> => {
  // While this one waited for its turn, another one has completed the file, or has replaced it.
  if (spool.isComplete()) return { is: 'closed', offset: spool.offset() };
  if (stop.aborted) return interrupted(spool);
  if (delivery.begins !== undefined) await spool.begin(delivery.begins);
  if (delivery.offset !== spool.offset()) return { is: 'misplaced', offset: spool.offset() };
  const ended = await pour(spool, delivery, stop);
  // A rejected file is discarded, and the client waits for the reason.
  if (isRefused()) return interrupted(spool);
  await spool.flush();
  if (ended !== undefined) return ended;
  const isWhole = delivery.isLast || spool.offset() === spool.length();
  return isWhole ? finish(spool) : { is: 'taken', offset: spool.offset(), whole: false };
};

/** The result of the transfer, and whether a client has received it. */
const createVerdict = () => {
  let ended = Promise.withResolvers<TransferReport>();
  let reported = Promise.withResolvers<void>();
  let outcome: TransferReport | undefined;
  return {
    /** Only another file can help. */
    isFinal: (): boolean => outcome?.outcome === 'failed' && !outcome.retryable,
    failure: () => (outcome?.outcome === 'failed' ? outcome : undefined),
    set: (report: TransferReport): void => {
      outcome = report;
      ended.resolve(report);
    },
    clear: (): void => {
      outcome = undefined;
      ended = Promise.withResolvers();
      reported = Promise.withResolvers();
    },
    ended: () => ended.promise,
    markReported: () => reported.resolve(),
    reported: () => reported.promise,
  };
};

interface Clients {
  readonly stop: () => void;
  readonly stopped: () => Promise<unknown>;
}

const createEnding = (spool: Spool, verdict: ReturnType<typeof createVerdict>, { stop, stopped }: Clients) => {
  let refusing: Promise<boolean> = Promise.resolve(false);
  const finish = (report: TransferReport): void => {
    verdict.set(report);
    stop();
  };
  const reopen = async (waitMs: number): Promise<boolean> => {
    const late = delay(waitMs, 'late' as const, { ref: false });
    if ((await Promise.race([verdict.reported(), late])) === 'late') return false;
    await stopped();
    await spool.begin();
    verdict.clear();
    return true;
  };
  return {
    finish,
    refuse: (report: TransferReport, waitMs: number): Promise<boolean> => {
      finish(report);
      refusing = reopen(waitMs);
      return refusing;
    },
    /** Resolves once another file is accepted, or none ever will be. */
    refusing: () => refusing,
  };
};

/** The next client may arrive before this pod has noticed that the connection of the previous one ended. */
const releaseMs = 1_000;

export const createReceiver = (spool: Spool): Receiver => {
  const verdict = createVerdict();
  let active: AbortController | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  const ending = createEnding(spool, verdict, { stop: () => active?.abort(), stopped: () => turn });

  const reportFailure = (): Taken | undefined => {
    const failure = verdict.failure();
    if (failure === undefined) return undefined;
    verdict.markReported();
    const { reason, message, retryable } = failure;
    return { is: retryable ? 'ended' : 'refused', offset: spool.offset(), reason, message };
  };

  /** Waits for the previous one to stop, which it does at once. */
  const inTurn = async (delivery: UploadDelivery, stop: AbortController): Promise<Taken> => {
    const release = (): void => {
      if (active === stop) active = undefined;
    };
    const work = turn.then(() => receive(spool, delivery, stop.signal, verdict.isFinal)).finally(release);
    turn = work.catch(() => undefined);
    active = stop;
    try {
      const taken = await work;
      return taken.is === 'interrupted' ? (reportFailure() ?? taken) : taken;
    } catch (error) {
      return refusal(spool, error instanceof TransferError ? error.code : 'InternalFault', messageOf(error));
    }
  };
  const take = async (delivery: UploadDelivery): Promise<Taken> => {
    if (!delivery.takesOver) await Promise.race([turn, delay(releaseMs, undefined, { ref: false })]);
    if (verdict.failure() !== undefined && delivery.begins !== undefined) {
      // Another file has already been started: the previous client can read its failure in the status.
      verdict.markReported();
      await ending.refusing();
    }
    const failed = reportFailure();
    if (failed !== undefined) return failed;
    if (spool.isComplete()) return { is: 'closed', offset: spool.offset() };
    if (active !== undefined && !delivery.takesOver) return { is: 'busy', offset: spool.offset() };
    active?.abort();
    return inTurn(delivery, new AbortController());
  };
  return {
    spool,
    take,
    report: verdict.ended,
    finish: ending.finish,
    refuse: ending.refuse,
    markReported: verdict.markReported,
    reported: verdict.reported,
  };
};
