// The receiving end of an upload: takes bytes into the spool, one client at a time, and tells clients what became of them.
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Readable } from 'node:stream';
import type { TransferReport } from '#shared/transfer/report.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { TransferError, isTransferError } from '#shared/transfer/fault.ts';
import type { Announcement, Spool } from '#shared/transfer/upload/spool.ts';

export interface UploadDelivery {
  /** Begins a new file, whatever is there of another. Left out: goes on with the one that was announced. */
  readonly begins?: Announcement | undefined;
  /** Where in the file the bytes belong. */
  readonly offset: number;
  /** The file ends with these bytes. Implied where they reach its length. */
  readonly isLast: boolean;
  /** A client that comes back may take the place of its own earlier connection, which may not have noticed that it is dead. */
  readonly takesOver: boolean;
  readonly body: Readable;
}

/**
 * - `taken`: on disk. `whole`: nothing more is needed.
 * - `misplaced`: the bytes belong elsewhere; go on at `offset`.
 * - `busy`: another client is sending. `closed`: all bytes are there already.
 * - `interrupted`: the client went away in the middle.
 * - `refused`: what came can be no disk here, or is not what was announced.
 * - `ended`: this Job takes no more, for a reason that is none of the file's; another one takes its place.
 */
export type Taken =
  | { readonly is: 'taken'; readonly offset: number; readonly whole: boolean }
  | { readonly is: 'misplaced' | 'busy' | 'closed' | 'interrupted'; readonly offset: number }
  | { readonly is: 'refused' | 'ended'; readonly offset: number; readonly reason: string; readonly message: string };

export interface Receiver {
  readonly spool: Pick<Spool, 'offset' | 'length' | 'isComplete' | 'announced'>;
  take(delivery: UploadDelivery): Promise<Taken>;
  /** The end of the transfer that reads the spool. */
  report(): Promise<TransferReport>;
  /** Tells everybody; they are refused from then on when it went wrong. */
  finish(report: TransferReport): void;
  /** As `finish`; the file is forgotten once a client has met its failure, and another one is taken. False where no client comes within `waitMs`. */
  refuse(report: TransferReport, waitMs: number): Promise<boolean>;
  /** The report was given to a client. */
  heard(): void;
  /** Settled once a client has met the failure that `finish` told of. */
  told(): Promise<void>;
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

/** Of each wait its own: one that all of them shared would hold on to every chunk until the last. */
const unlessStopped = <T>(work: Promise<T>, stop: AbortSignal): Promise<T | 'stopped'> =>
  new Promise((resolve, reject) => {
    const onStop = (): void => resolve('stopped');
    stop.addEventListener('abort', onStop, { once: true });
    void work.then(resolve, reject).finally(() => stop.removeEventListener('abort', onStop));
  });

/** Into the spool, until the body ends or somebody says stop: then the rest is left unread, for there is still an answer to be given. */
const pour = async (spool: Spool, { body }: UploadDelivery, stop: AbortSignal): Promise<Taken | undefined> => {
  const length = spool.length();
  const chunks = body.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer, undefined>;
  try {
    for (;;) {
      if (stop.aborted) return interrupted(spool);
      // One after the other: each is on its way to the disk before the next is asked for.
      // oxlint-disable-next-line no-await-in-loop
      const next = await unlessStopped(chunks.next(), stop);
      if (next === 'stopped' || stop.aborted) return interrupted(spool);
      if (next.done === true) return undefined;
      if (length !== undefined && spool.offset() + next.value.length > length) {
        return refusal(spool, 'ImageTruncated', `more bytes come than the ${length} that were announced`);
      }
      await spool.append(next.value);
    }
  } catch (error) {
    return isTransferError(error) ? refusal(spool, error.code, error.message) : interrupted(spool);
  }
};

/** What does not have the digest it was announced with is forgotten: nobody could mend it. */
const finish = async (spool: Spool): Promise<Taken> => {
  const [offset, length, announced] = [spool.offset(), spool.length(), spool.announced()];
  const checksum = announced?.checksum;
  if (length !== undefined && offset !== length) {
    return refusal(spool, 'ImageTruncated', `${offset} bytes came of the ${length} that were announced`);
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

/** `isRefused`: the transfer came to a bad end that no other attempt mends. */
const receive = async (
  spool: Spool,
  delivery: UploadDelivery,
  stop: AbortSignal,
  isRefused: () => boolean,
): Promise<Taken> => {
  // While this one waited for its turn, another has completed the file, or has taken its place.
  if (spool.isComplete()) return { is: 'closed', offset: spool.offset() };
  if (stop.aborted) return interrupted(spool);
  if (delivery.begins !== undefined) await spool.begin(delivery.begins);
  if (delivery.offset !== spool.offset()) return { is: 'misplaced', offset: spool.offset() };
  const ended = await pour(spool, delivery, stop);
  // Of what is refused nothing is kept, and the client waits for the word on it.
  if (isRefused()) return interrupted(spool);
  await spool.flush();
  if (ended !== undefined) return ended;
  const isWhole = delivery.isLast || spool.offset() === spool.length();
  return isWhole ? finish(spool) : { is: 'taken', offset: spool.offset(), whole: false };
};

/** How the transfer ended, and whether a client has met that. */
const createVerdict = () => {
  let ended = Promise.withResolvers<TransferReport>();
  let told = Promise.withResolvers<void>();
  let outcome: TransferReport | undefined;
  return {
    /** Nothing helps but another file. */
    isFinal: (): boolean => outcome?.outcome === 'failed' && !outcome.retryable,
    failure: () => (outcome?.outcome === 'failed' ? outcome : undefined),
    set: (report: TransferReport): void => {
      outcome = report;
      ended.resolve(report);
    },
    clear: (): void => {
      outcome = undefined;
      ended = Promise.withResolvers();
      told = Promise.withResolvers();
    },
    ended: () => ended.promise,
    tell: () => told.resolve(),
    told: () => told.promise,
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
    if ((await Promise.race([verdict.told(), late])) === 'late') return false;
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
    /** Settled once another file is taken, or none ever will be. */
    refusing: () => refusing,
  };
};

export const createReceiver = (spool: Spool): Receiver => {
  const verdict = createVerdict();
  let active: AbortController | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  const ending = createEnding(spool, verdict, { stop: () => active?.abort(), stopped: () => turn });

  const reportFailure = (): Taken | undefined => {
    const failure = verdict.failure();
    if (failure === undefined) return undefined;
    verdict.tell();
    const { reason, message, retryable } = failure;
    return { is: retryable ? 'ended' : 'refused', offset: spool.offset(), reason, message };
  };

  /** Waits for the one before to stop, which it does at once. */
  const inTurn = async (delivery: UploadDelivery, stop: AbortController): Promise<Taken> => {
    const work = turn.then(() => receive(spool, delivery, stop.signal, verdict.isFinal));
    turn = work.catch(() => undefined);
    active = stop;
    try {
      const taken = await work;
      return taken.is === 'interrupted' ? (reportFailure() ?? taken) : taken;
    } catch (error) {
      return refusal(spool, error instanceof TransferError ? error.code : 'InternalFault', messageOf(error));
    } finally {
      if (active === stop) active = undefined;
    }
  };
  const take = async (delivery: UploadDelivery): Promise<Taken> => {
    if (verdict.failure() !== undefined && delivery.begins !== undefined) {
      // Another file is on its way already: whose failure it was may read it in the status.
      verdict.tell();
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
    heard: verdict.tell,
    told: verdict.told,
  };
};
