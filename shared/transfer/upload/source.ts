// An upload as a source: received bytes are read from the spool, others are awaited. So the disk is written while its file arrives.
import { TransferError } from '#shared/transfer/fault.ts';
import { isQcow2 } from '#shared/transfer/format/detect.ts';
import { type ByteSource, headBytes } from '#shared/transfer/source/source.ts';
import type { Spool } from '#shared/transfer/upload/spool.ts';

const chunkBytes = 1024 * 1024;

export interface UploadSourceOptions {
  readonly spool: Spool;
  readonly signal: AbortSignal;
  /** Milliseconds to wait for the first byte. */
  readonly idleMs: number;
  /** Milliseconds to wait for each further one. */
  readonly pauseMs: number;
  /** Reason of a wait, for the status; `undefined`: bytes arrive. */
  readonly onWait: (text: string | undefined) => void;
}

const begunAnew = (): TransferError =>
  new TransferError('SourceChanged', 'the client started its upload over', { startOver: true });

const seconds = (milliseconds: number): string => `${Math.round(milliseconds / 1000)} s`;

const expired = (idleMs: number): TransferError =>
  new TransferError(
    'UploadExpired',
    `no bytes for ${seconds(idleMs)}; start again with a new value of the annotation bullion.dev/retry, then upload`,
  );

const paused = (pauseMs: number, offset: number): TransferError =>
  new TransferError('UploadPaused', `no bytes for ${seconds(pauseMs)}, after ${offset} of them`);

/** A file of which nothing has arrived is not worth keeping. */
const silenceOf = ({ spool, idleMs, pauseMs }: UploadSourceOptions) =>
  spool.offset() === 0
    ? { limitMs: idleMs, fault: () => expired(idleMs) }
    : { limitMs: pauseMs, fault: () => paused(pauseMs, spool.offset()) };

/** Resolves at the next change, on abort or on timeout. */
const nextChange = async (options: UploadSourceOptions): Promise<void> => {
  const { spool, signal } = options;
  signal.throwIfAborted();
  const late = Promise.withResolvers<void>();
  const { limitMs, fault } = silenceOf(options);
  const timer = setTimeout(() => late.reject(fault()), Math.min(limitMs, 2 ** 31 - 1));
  const abort = (): void => late.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([spool.changed(), late.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
};

/** Waits for bytes of the current file, and throws if it was restarted meanwhile. */
const createReader = (options: UploadSourceOptions) => {
  const { spool, signal, onWait } = options;
  let generation = spool.generation();
  const requireSame = (): void => {
    if (spool.generation() !== generation) throw begunAnew();
  };
  const beginAnew = (): void => {
    generation = spool.generation();
  };
  const until = async (
    isThere: () => boolean,
    waitingFor?: string,
    onTurn: () => void = requireSame,
  ): Promise<void> => {
    for (;;) {
      signal.throwIfAborted();
      onTurn();
      if (isThere()) return;
      onWait(waitingFor);
      await nextChange(options);
      onWait(undefined);
    }
  };
  const has = (end: number): boolean => spool.offset() >= end;
  const readInto = async (offset: number, target: Uint8Array): Promise<void> => {
    const end = offset + target.length;
    await until(() => has(end) || spool.isComplete());
    if (!has(end)) {
      throw new TransferError(
        'ImageTruncated',
        `the file ends after ${spool.offset()} bytes, but more bytes are required`,
      );
    }
    await spool.readInto(offset, target);
    requireSame();
  };
  return {
    until: (end: number) => until(() => has(end) || spool.isComplete()),
    /** Nothing was read yet: a file that is restarted meanwhile is simply used instead. */
    untilFirst: (end: number) => until(() => has(end) || spool.isComplete(), 'waiting for the upload', beginAnew),
    /** A client may still detect that it sent wrong bytes. */
    untilVouchedFor: () => until(() => spool.isComplete()),
    readInto,
    read: async (offset: number, length: number): Promise<Buffer> => {
      const bytes = Buffer.allocUnsafe(length);
      await readInto(offset, bytes);
      return bytes;
    },
  };
};

/** Reads only from the spool, so that `probe` starts a new inspection. */
export const createUploadSource = (options: UploadSourceOptions): ByteSource => {
  const { spool } = options;
  const reader = createReader(options);
  return {
    probe: async () => {
      await reader.untilFirst(headBytes);
      const isWhole = spool.isComplete() && spool.offset() <= headBytes;
      const head = await reader.read(0, Math.min(headBytes, spool.offset()));
      const size = spool.length();
      // Reading the end of a raw disk would wait for all of it, and a disk that is too large must be rejected before.
      const isTableFirst = isQcow2(head);
      const hasRanges = size !== undefined && (spool.isComplete() || isTableFirst);
      return { size, head, isWhole, hasRanges, isPinned: true };
    },
    read: reader.read,
    readInto: reader.readInto,
    stream: async function* stream() {
      for (let at = 0; ;) {
        await reader.until(at + 1);
        const length = Math.min(chunkBytes, spool.offset() - at);
        // The end is known only after the client has confirmed the whole file.
        if (length === 0) return;
        yield await reader.read(at, length);
        at += length;
      }
    },
    confirm: () => reader.untilVouchedFor(),
    receivedBytes: () => spool.offset(),
    close: () => Promise.resolve(),
  };
};
