// The first request to an HTTP source: one range returns size, validator, support of ranges and the first bytes. HEAD is not required.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import type { Destination } from '#shared/clients/http/redirect.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import {
  type ContentRange,
  identityOf,
  parseContentLength,
  parseContentRange,
} from '#shared/transfer/source/http/answer.ts';
import { type HttpSession, ask, withRetries, readUpTo, refuse } from '#shared/transfer/source/http/session.ts';
import { type SourceFacts, headBytes } from '#shared/transfer/source/source.ts';

/** Statuses by which servers reject this range, rightly or wrongly. */
const rangeRefusals = new Set([400, 405, 416, 501]);

const pin = (session: HttpSession, final: Destination, response: HttpResponse, size: number | undefined) => {
  const identity = identityOf(response.headers);
  session.pinned = { final, identity, size };
  return {
    isPinned: identity.validator !== undefined,
    identity: identity.validator,
    contentType: response.headers['content-type'],
  };
};

const wholeFacts = async (session: HttpSession, response: HttpResponse, final: Destination): Promise<SourceFacts> => {
  const announced = parseContentLength(response.headers);
  const head = await readUpTo(session, response, headBytes);
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
  const head = await readUpTo(session, response, headBytes);
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
  return response.status === 200 ? wholeFacts(session, response, final) : refuse(session, response);
};

const probeOnce = async (session: HttpSession): Promise<SourceFacts> => {
  session.pinned = undefined;
  if (session.rangesBroken) return probeWhole(session);
  const { response, final } = await ask(session, { range: `bytes=0-${headBytes - 1}` });
  if (response.status === 200) return wholeFacts(session, response, final);
  if (response.status === 206) return (await rangedFacts(session, response, final)) ?? probeWhole(session);
  if (!rangeRefusals.has(response.status)) return refuse(session, response);
  response.discard();
  return probeWhole(session);
};

export const probe = (session: HttpSession): Promise<SourceFacts> => withRetries(session, () => probeOnce(session));
