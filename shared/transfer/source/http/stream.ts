// The whole file as one stream, resumed after an interruption with Range and If-Range.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import {
  changedFault,
  identityOf,
  isOtherObject,
  parseContentLength,
  parseContentRange,
} from '#shared/transfer/source/http/answer.ts';
import type { Reached } from '#shared/transfer/source/source.ts';
import {
  type HttpSession,
  ask,
  giveUp,
  backOffOf,
  refuse,
  requirePinned,
  toTransferError,
} from '#shared/transfer/source/http/session.ts';

/** Bytes that are read again when a download resumes, to verify that the file is the same. */
const overlapBytes = 64 * 1024;

interface Opened {
  readonly response: HttpResponse;
  /** Offset of the body in the file: at most `position`. */
  readonly from: number;
}

/** A server without ranges sends everything again: acceptable if it is provably the same object. */
const openedWhole = (session: HttpSession, response: HttpResponse, position: number): Opened => {
  const { identity, size } = requirePinned(session);
  const length = parseContentLength(response.headers);
  const isOtherSize = size !== undefined && length !== undefined && length !== size;
  const isUnproven = position > 0 && identityOf(response.headers).validator !== identity.validator;
  if (isOtherSize || isUnproven) return giveUp(response, changedFault(session.where));
  return { response, from: 0 };
};

const openedRange = (session: HttpSession, response: HttpResponse, from: number): Opened => {
  const { size } = requirePinned(session);
  const range = parseContentRange(response.headers);
  const isWanted = range?.first === from && (size === undefined || range.last + 1 === size);
  if (range?.total !== undefined && size !== undefined && range.total !== size) {
    return giveUp(response, changedFault(session.where));
  }
  if (isWanted) return { response, from };
  const message = `${session.where} answered with another range than requested`;
  return giveUp(response, new TransferError('SourceInterrupted', message));
};

const open = async (session: HttpSession, { position, tail }: Reached): Promise<Opened> => {
  const { identity } = requirePinned(session);
  const from = position - tail.length;
  const wanted = position === 0 ? {} : { range: `bytes=${from}-`, 'if-range': identity.validator ?? '' };
  const { response, final } = await ask(session, wanted);
  const isAnswer = response.status === 200 || response.status === 206;
  if (response.status === 416 || (isAnswer && isOtherObject(identity, response.headers))) {
    return giveUp(response, changedFault(session.where));
  }
  if (response.status === 200) return openedWhole(session, response, position);
  if (response.status === 206 && position > 0) return openedRange(session, response, from);
  return refuse(session, { response, final });
};

/** Without a strong validator a second request may return another object, so the download must start over. */
const whenUnpinned = (session: HttpSession, fault: unknown): unknown => {
  const isContinuable = requirePinned(session).identity.validator !== undefined;
  if (!(fault instanceof TransferError) || !fault.retryable || isContinuable) return fault;
  const message = `${fault.message}; the server sends no strong validator, so the download starts over`;
  return new TransferError(fault.code, message, { cause: fault, startOver: true });
};

/** Throws unless a piece at `offset` equals the bytes that were read there before. */
const checkOverlap = (session: HttpSession, piece: Buffer, offset: number, { position, tail }: Reached): void => {
  const known = position - tail.length;
  const [first, end] = [Math.max(offset, known), Math.min(offset + piece.length, position)];
  if (first >= end) return;
  const isSame = piece.subarray(first - offset, end - offset).equals(tail.subarray(first - known, end - known));
  if (!isSame) throw changedFault(session.where);
};

async function* freshBytes(session: HttpSession, reached: Reached): AsyncGenerator<Buffer, void, undefined> {
  const { response, from } = await open(session, reached);
  let offset = from;
  for await (const chunk of response.body) {
    session.receivedBytes += chunk.length;
    checkOverlap(session, chunk, offset, reached);
    const observed = Math.max(0, Math.min(reached.position - offset, chunk.length));
    offset += chunk.length;
    if (observed < chunk.length) yield chunk.subarray(observed);
  }
}

const start: Reached = { position: 0, tail: Buffer.alloc(0) };

/** Keeps references to the latest pieces of a stream: they are joined only after an interruption. */
export const createTrail = ({ position: first, tail }: Reached = start) => {
  let pieces: Buffer[] = [tail];
  let kept = tail.length;
  let position = first;
  return {
    add: (piece: Buffer): number => {
      pieces.push(piece);
      kept += piece.length;
      position += piece.length;
      while (kept - (pieces[0]?.length ?? 0) >= overlapBytes) kept -= pieces.shift()?.length ?? 0;
      return position;
    },
    reached: (): Reached => {
      const tail = Buffer.concat(pieces).subarray(-overlapBytes);
      pieces = [tail];
      kept = tail.length;
      return { position, tail };
    },
  };
};

/** Excess bytes may already be in use, so the whole pass is invalid. */
const checkExcess = (session: HttpSession, position: number): void => {
  const { size } = requirePinned(session);
  if (size === undefined || position <= size) return;
  throw new TransferError('SourceInterrupted', `${session.where} sent more than its ${size} bytes`, {
    startOver: true,
  });
};

const checkEnd = (session: HttpSession, position: number): void => {
  const { size } = requirePinned(session);
  if (size === undefined || position === size) return;
  throw new TransferError('SourceInterrupted', `${session.where} ended after ${position} of ${size} bytes`);
};

export async function* stream(session: HttpSession, from?: Reached): AsyncGenerator<Buffer, void, undefined> {
  const backOff = backOffOf(session);
  const trail = createTrail(from);
  for (;;) {
    const reached = trail.reached();
    let { position } = reached;
    try {
      for await (const chunk of freshBytes(session, reached)) {
        position = trail.add(chunk);
        checkExcess(session, position);
        backOff.progressed(chunk.length);
        yield chunk;
      }
      return checkEnd(session, position);
    } catch (error) {
      const fault = position === 0 ? toTransferError(error) : whenUnpinned(session, toTransferError(error));
      if (fault instanceof TransferError && fault.startOver) throw fault;
      await backOff.afterFailure(fault);
    }
  }
}
