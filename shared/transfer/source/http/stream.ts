// The whole file in one stream, continued after a cut with Range and If-Range.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import {
  changedFault,
  identityOf,
  isOtherObject,
  parseContentLength,
  parseContentRange,
} from '#shared/transfer/source/http/answer.ts';
import {
  type Session,
  ask,
  giveUp,
  patienceOf,
  refuse,
  requirePinned,
  toTransferError,
} from '#shared/transfer/source/http/session.ts';

interface Opened {
  readonly response: HttpResponse;
  /** Bytes at the start of the body that were seen before. */
  readonly skip: number;
}

/** A server without ranges sends all again: fine as long as it is provably the same object. */
const openedWhole = (session: Session, response: HttpResponse, position: number): Opened => {
  const { identity, size } = requirePinned(session);
  const length = parseContentLength(response.headers);
  const isOtherSize = size !== undefined && length !== undefined && length !== size;
  const isUnproven = position > 0 && identityOf(response.headers).validator !== identity.validator;
  if (isOtherSize || isUnproven) return giveUp(response, changedFault(session.where));
  return { response, skip: position };
};

const openedRange = (session: Session, response: HttpResponse, position: number): Opened => {
  const { size } = requirePinned(session);
  const range = parseContentRange(response.headers);
  const isWanted = range?.first === position && (size === undefined || range.last + 1 === size);
  if (range?.total !== undefined && size !== undefined && range.total !== size) {
    return giveUp(response, changedFault(session.where));
  }
  if (isWanted) return { response, skip: 0 };
  const message = `${session.where} answered with another range than was asked for`;
  return giveUp(response, new TransferError('SourceInterrupted', message));
};

const open = async (session: Session, position: number): Promise<Opened> => {
  const { identity } = requirePinned(session);
  const wanted = position === 0 ? {} : { range: `bytes=${position}-`, 'if-range': identity.validator ?? '' };
  const { response } = await ask(session, wanted);
  const isAnswer = response.status === 200 || response.status === 206;
  if (response.status === 416 || (isAnswer && isOtherObject(identity, response.headers))) {
    return giveUp(response, changedFault(session.where));
  }
  if (response.status === 200) return openedWhole(session, response, position);
  if (response.status === 206 && position > 0) return openedRange(session, response, position);
  return refuse(session, response);
};

/** Without a strong validator a second request may meet another object, so what was read must be forgotten. */
const whenUnpinned = (session: Session, fault: unknown): unknown => {
  const isContinuable = requirePinned(session).identity.validator !== undefined;
  if (!(fault instanceof TransferError) || !fault.retryable || isContinuable) return fault;
  const message = `${fault.message}; the server gives no strong validator, so the download starts over`;
  return new TransferError(fault.code, message, { cause: fault, startOver: true });
};

async function* freshBytes(session: Session, position: number): AsyncGenerator<Buffer, void, undefined> {
  const { response, skip } = await open(session, position);
  let ignored = 0;
  for await (const chunk of response.body) {
    session.receivedBytes += chunk.length;
    const seen = Math.min(skip - ignored, chunk.length);
    ignored += seen;
    if (seen < chunk.length) yield chunk.subarray(seen);
  }
}

/** What came too much may already be in use, so nothing of this pass can be trusted. */
const checkExcess = (session: Session, position: number): void => {
  const { size } = requirePinned(session);
  if (size === undefined || position <= size) return;
  throw new TransferError('SourceInterrupted', `${session.where} sent more than its ${size} bytes`, {
    startOver: true,
  });
};

const checkEnd = (session: Session, position: number): void => {
  const { size } = requirePinned(session);
  if (size === undefined || position === size) return;
  throw new TransferError('SourceInterrupted', `${session.where} ended after ${position} of ${size} bytes`);
};

export async function* stream(session: Session): AsyncGenerator<Buffer, void, undefined> {
  const patience = patienceOf(session);
  let position = 0;
  for (;;) {
    try {
      for await (const chunk of freshBytes(session, position)) {
        position += chunk.length;
        checkExcess(session, position);
        patience.progressed(chunk.length);
        yield chunk;
      }
      return checkEnd(session, position);
    } catch (error) {
      const fault = position === 0 ? toTransferError(error) : whenUnpinned(session, toTransferError(error));
      if (fault instanceof TransferError && fault.startOver) throw fault;
      await patience.afterFailure(fault);
    }
  }
}
