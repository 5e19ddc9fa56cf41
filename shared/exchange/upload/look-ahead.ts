// Determines the format of a file from its first bytes, before the rest is read.
import { Readable } from 'node:stream';
import { isTransferError } from '#shared/transfer/fault.ts';
import { checkCapacity, planTransfer } from '#shared/transfer/plan.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import { type ByteSource, headBytes } from '#shared/transfer/source/source.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { readHead, joined } from '#shared/transfer/source/source.ts';

export interface LookedAt {
  readonly inspection: Inspection;
  /** The whole file, including its beginning. */
  readonly stream: Readable;
}

const sourceOf = (head: Buffer, size: number | undefined, isWhole: boolean): ByteSource => ({
  probe: () => Promise.resolve({ size: isWhole ? head.length : size, head, isWhole, hasRanges: false, isPinned: true }),
  read: () => Promise.reject(new Error('only the beginning is available')),
  readInto: () => Promise.reject(new Error('only the beginning is available')),
  stream: async function* stream() {
    yield head;
  },
  receivedBytes: () => head.length,
  close: () => Promise.resolve(),
});

/** `size`: bytes of the file, if known. Throws a Problem (400) if it cannot be a disk. */
export const lookAhead = async (stream: Readable, size: number | undefined): Promise<LookedAt> => {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const { head, isWhole } = await readHead(chunks);
  return asProblem(async () => {
    const { inspection } = await planTransfer(sourceOf(head.subarray(0, headBytes), size, isWhole));
    return { inspection, stream: Readable.from(joined(head, chunks), { objectMode: false }) };
  });
};

/**
 * For the first piece of a file that is sent in pieces: files that the Job would reject are rejected before any byte is forwarded, so that it
 * keeps waiting for another file. A piece too short to decide is forwarded unchanged. Throws a Problem (400).
 */
export const lookAtPiece = async (piece: Readable, size: number, limitBytes: number | undefined): Promise<Readable> => {
  const chunks = piece[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const { head } = await readHead(chunks);
  const stream = Readable.from(joined(head, chunks), { objectMode: false });
  const isWhole = head.length >= size;
  if (head.length < headBytes && !isWhole) return stream;
  await asProblem(async () => {
    const { inspection } = await planTransfer(sourceOf(head.subarray(0, headBytes), size, isWhole));
    await requireRoom(inspection.virtualSize, limitBytes);
  });
  return stream;
};

export const asProblem = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (isTransferError(error)) throw new Problem(400, error.code, error.message);
    throw error;
  }
};

/** Throws a Problem (400) for a disk that the Job would reject: nothing is forwarded, so the Job keeps waiting for another file. */
export const requireRoom = (virtualSize: number | undefined, limitBytes: number | undefined): Promise<void> =>
  asProblem(async () => {
    if (virtualSize !== undefined && limitBytes !== undefined) checkCapacity(virtualSize, limitBytes);
  });
