// One file over HTTP(S) as a source, and one exact byte range of it.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { changedFault, isOtherObject, parseContentRange } from '#shared/transfer/source/http/answer.ts';
import { probe } from '#shared/transfer/source/http/probe.ts';
import { stream } from '#shared/transfer/source/http/stream.ts';
import type { ByteSource } from '#shared/transfer/source/source.ts';
import {
  type HttpSourceOptions,
  createSession,
  type HttpSession,
  ask,
  giveUp,
  withRetries,
  refuse,
  requirePinned,
} from '#shared/transfer/source/http/session.ts';

const rangesLost = (session: HttpSession): TransferError => {
  session.rangesBroken = true;
  return new TransferError('SourceChanged', `${session.where} no longer supports ranges`, { startOver: true });
};

/** Throws unless the answer contains exactly the requested range of the pinned object. */
const checkRange = async (
  session: HttpSession,
  response: HttpResponse,
  wanted: { first: number; last: number },
): Promise<void> => {
  const { identity, size } = requirePinned(session);
  if (response.status === 416) giveUp(response, changedFault(session.where));
  if (response.status !== 200 && response.status !== 206) await refuse(session, response);
  const range = parseContentRange(response.headers);
  const isOtherSize = range?.total !== undefined && range.total !== size;
  if (isOtherObject(identity, response.headers) || isOtherSize) giveUp(response, changedFault(session.where));
  if (response.status === 200) giveUp(response, rangesLost(session));
  if (range?.first === wanted.first && range.last === wanted.last) return;
  giveUp(
    response,
    new TransferError('SourceInterrupted', `${session.where} answered with another range than requested`),
  );
};

class TooLong extends Error {}

/** Copies the body into `target`; returns more than its length for a body that is too long. */
const copyBody = async (session: HttpSession, response: HttpResponse, target: Uint8Array): Promise<number> => {
  let length = 0;
  try {
    await response.pour((chunk) => {
      session.receivedBytes += chunk.length;
      if (length + chunk.length <= target.length) target.set(chunk, length);
      length += chunk.length;
      if (length > target.length) throw new TooLong();
    });
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
  }
  return length;
};

const readOnce = async (session: HttpSession, offset: number, target: Uint8Array): Promise<void> => {
  const { identity } = requirePinned(session);
  const last = offset + target.length - 1;
  const conditional = identity.validator === undefined ? {} : { 'if-range': identity.validator };
  const { response } = await ask(session, { range: `bytes=${offset}-${last}`, ...conditional });
  await checkRange(session, response, { first: offset, last });
  const length = await copyBody(session, response, target);
  if (length === target.length) return;
  throw new TransferError('SourceInterrupted', `${session.where} sent ${length} bytes for a range of ${target.length}`);
};

const readInto = (session: HttpSession, offset: number, target: Uint8Array): Promise<void> =>
  target.length === 0 ? Promise.resolve() : withRetries(session, () => readOnce(session, offset, target));

const read = async (session: HttpSession, offset: number, length: number): Promise<Buffer> => {
  const bytes = Buffer.allocUnsafe(length);
  await readInto(session, offset, bytes);
  return bytes;
};

/** One file over HTTP(S) as a source: located and pinned once, streamed with resume, read by ranges. */
export const createHttpSource = (options: HttpSourceOptions): ByteSource => {
  const session = createSession(options);
  return {
    probe: () => probe(session),
    read: (offset, length) => read(session, offset, length),
    readInto: (offset, target) => readInto(session, offset, target),
    stream: () => stream(session),
    receivedBytes: () => session.receivedBytes,
    close: () => options.client.close(),
  };
};
