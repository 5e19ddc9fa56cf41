// One exact byte range of an HTTP source.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { changedFault, isOtherObject, parseContentRange } from '#shared/transfer/source/http/answer.ts';
import {
  type Session,
  ask,
  giveUp,
  patiently,
  readUpTo,
  refuse,
  requirePinned,
} from '#shared/transfer/source/http/session.ts';

const rangesLost = (session: Session): TransferError => {
  session.rangesBroken = true;
  return new TransferError('SourceChanged', `${session.where} no longer answers ranges`, { startOver: true });
};

/** Throws unless the answer holds exactly the range asked for, of the pinned object. */
const checkRange = (session: Session, response: HttpResponse, wanted: { first: number; last: number }): void => {
  const { identity, size } = requirePinned(session);
  if (response.status === 416) giveUp(response, changedFault(session.where));
  if (response.status !== 200 && response.status !== 206) refuse(session, response);
  const range = parseContentRange(response.headers);
  const isOtherSize = range?.total !== undefined && range.total !== size;
  if (isOtherObject(identity, response.headers) || isOtherSize) giveUp(response, changedFault(session.where));
  if (response.status === 200) giveUp(response, rangesLost(session));
  if (range?.first === wanted.first && range.last === wanted.last) return;
  giveUp(
    response,
    new TransferError('SourceInterrupted', `${session.where} answered with another range than was asked for`),
  );
};

const readOnce = async (session: Session, offset: number, length: number): Promise<Buffer> => {
  const { identity } = requirePinned(session);
  const last = offset + length - 1;
  const conditional = identity.validator === undefined ? {} : { 'if-range': identity.validator };
  const { response } = await ask(session, { range: `bytes=${offset}-${last}`, ...conditional });
  checkRange(session, response, { first: offset, last });
  // One more than wanted, so that a body that is too long shows.
  const data = await readUpTo(session, response, length + 1);
  if (data.length === length) return data;
  throw new TransferError('SourceInterrupted', `${session.where} sent ${data.length} bytes for a range of ${length}`);
};

export const read = (session: Session, offset: number, length: number): Promise<Buffer> =>
  length === 0 ? Promise.resolve(Buffer.alloc(0)) : patiently(session, () => readOnce(session, offset, length));
