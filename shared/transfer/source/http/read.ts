// One file over HTTP(S) as a source, and one exact byte range of it.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { statedDigest } from '#shared/clients/http/digest.ts';
import type { Destination } from '#shared/clients/http/redirect.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import {
  changedFault,
  type ContentRange,
  identityOf,
  isOtherObject,
  parseContentLength,
  parseContentRange,
} from './answer.ts';
import {
  type HttpAnswer,
  ask,
  createSession,
  giveUp,
  type HttpSession,
  type HttpSourceOptions,
  readCounted,
  refuse,
  requirePinned,
  withRetries,
} from './session.ts';
import { stream } from './stream.ts';
import { headBytes, type ResumableSource, type SourceFacts } from '#shared/transfer/source/source.ts';

// The first request to an HTTP source: one range returns size, validator, support of ranges and the first bytes. HEAD is not required.

/** Statuses by which servers reject this range, rightly or wrongly. */
const rangeRefusals = new Set([400, 405, 416, 501]);

const pin = (session: HttpSession, final: Destination, response: HttpResponse, size: number | undefined) => {
  const identity = identityOf(response.headers);
  session.pinned = { final, identity, size };
  return {
    isPinned: identity.validator !== undefined,
    identity: identity.validator,
    digest: statedDigest(response.headers),
    contentType: response.headers['content-type'],
  };
};

const wholeFacts = async (session: HttpSession, response: HttpResponse, final: Destination): Promise<SourceFacts> => {
  const announced = parseContentLength(response.headers);
  const head = await readCounted(session, response, headBytes);
  const isWhole = head.length < headBytes || announced === headBytes;
  if (isWhole && announced !== undefined && announced !== head.length) {
    throw new TransferError('SourceInterrupted', `${session.where} ended after ${head.length} of ${announced} bytes`);
  }
  const size = isWhole ? head.length : announced;
  return { size, head, isWhole, hasRanges: false, ...pin(session, final, response, size) };
};

const isUsable = (range: ContentRange | undefined): range is Required<ContentRange> =>
  range?.first === 0 && range.total !== undefined && range.last + 1 === Math.min(range.total, headBytes);

const rangedFacts = async (
  session: HttpSession,
  response: HttpResponse,
  final: Destination,
): Promise<SourceFacts | undefined> => {
  const range = parseContentRange(response.headers);
  if (!isUsable(range)) {
    response.discard();
    return undefined;
  }
  const head = await readCounted(session, response, headBytes);
  if (head.length !== range.last + 1) {
    throw new TransferError(
      'SourceInterrupted',
      `${session.where} sent ${head.length} bytes for a range of ${range.last + 1}`,
    );
  }
  return {
    size: range.total,
    head,
    isWhole: head.length === range.total,
    hasRanges: true,
    ...pin(session, final, response, range.total),
  };
};

const probeWhole = async (session: HttpSession): Promise<SourceFacts> => {
  const { response, final } = await ask(session, {});
  return response.status === 200 ? wholeFacts(session, response, final) : refuse(session, { response, final });
};

const probeOnce = async (session: HttpSession): Promise<SourceFacts> => {
  session.pinned = undefined;
  if (session.rangesBroken) return probeWhole(session);
  const { response, final } = await ask(session, { range: `bytes=0-${headBytes - 1}` });
  if (response.status === 200) return wholeFacts(session, response, final);
  if (response.status === 206) return (await rangedFacts(session, response, final)) ?? probeWhole(session);
  if (!rangeRefusals.has(response.status)) return refuse(session, { response, final });
  response.discard();
  return probeWhole(session);
};

const probe = (session: HttpSession): Promise<SourceFacts> => withRetries(session, () => probeOnce(session));

const rangesLost = (session: HttpSession): TransferError => {
  session.rangesBroken = true;
  return new TransferError('SourceChanged', `${session.where} no longer supports ranges`, { startOver: true });
};

/** Throws unless the answer contains exactly the requested range of the pinned object. */
const checkRange = async (
  session: HttpSession,
  { response, final }: HttpAnswer,
  wanted: { first: number; last: number },
): Promise<void> => {
  const { identity, size } = requirePinned(session);
  if (response.status === 416) giveUp(response, changedFault(session.where));
  if (response.status !== 200 && response.status !== 206) await refuse(session, { response, final });
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
  const answer = await ask(session, { range: `bytes=${offset}-${last}`, ...conditional });
  const { response } = answer;
  await checkRange(session, answer, { first: offset, last });
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
export const createHttpSource = (options: HttpSourceOptions): ResumableSource => {
  const session = createSession(options);
  return {
    probe: () => probe(session),
    read: (offset, length) => read(session, offset, length),
    readInto: (offset, target) => readInto(session, offset, target),
    stream: (from) => stream(session, from),
    receivedBytes: () => session.receivedBytes,
    close: () => options.client.close(),
  };
};
