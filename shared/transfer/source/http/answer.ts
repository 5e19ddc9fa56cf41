// What the answers of an HTTP server mean for a transfer: pure decisions over status and headers.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { TransferError } from '#shared/transfer/fault.ts';

type Headers = HttpResponse['headers'];

/** An inclusive byte range of an object; `total` is absent for `*`. */
export interface ContentRange {
  readonly first: number;
  readonly last: number;
  readonly total?: number;
}

const parseCount = (text: string | undefined): number | undefined => {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return undefined;
  const count = Number(text);
  return Number.isSafeInteger(count) ? count : undefined;
};

export const parseContentLength = (headers: Headers): number | undefined =>
  parseCount(headers['content-length']?.trim());

/** `bytes 0-99/1000` or `bytes 0-99/*`; `undefined` when missing or malformed. */
export const parseContentRange = (headers: Headers): ContentRange | undefined => {
  const match = /^bytes\s+(\d+)-(\d+)\/(\d+|\*)$/i.exec(headers['content-range']?.trim() ?? '');
  const first = parseCount(match?.[1]);
  const last = parseCount(match?.[2]);
  if (match === null || first === undefined || last === undefined || last < first) return undefined;
  if (match[3] === '*') return { first, last };
  const total = parseCount(match[3]);
  return total === undefined || last >= total ? undefined : { first, last, total };
};

/** A Last-Modified is strong once it is this much older than the answer's own Date (RFC 9110, 8.8.2.2). */
const strongDateMs = 60_000;

/** What may go into If-Range: a strong entity tag, else a date old enough to be strong. */
export const strongValidatorOf = (headers: Headers): string | undefined => {
  const tag = headers['etag']?.trim();
  if (tag !== undefined) return /^"[^"]*"$/.test(tag) ? tag : undefined;
  const modified = headers['last-modified']?.trim();
  const age = Date.parse(headers['date'] ?? '') - Date.parse(modified ?? '');
  return age >= strongDateMs ? modified : undefined;
};

/** Fields that must stay the same for as long as one object is read; `undefined` where the server does not send them. */
export interface Identity {
  readonly tag: string | undefined;
  readonly modified: string | undefined;
  readonly validator: string | undefined;
}

export const identityOf = (headers: Headers): Identity => ({
  tag: headers['etag']?.trim(),
  modified: headers['last-modified']?.trim(),
  validator: strongValidatorOf(headers),
});

const differs = (before: string | undefined, after: string | undefined): boolean =>
  before !== undefined && after !== undefined && before !== after;

/** Whether an answer is visibly of another object than the one pinned. Where both have a tag, dates do not matter. */
export const isOtherObject = (pinned: Identity, headers: Headers): boolean => {
  const now = identityOf(headers);
  if (pinned.tag !== undefined && now.tag !== undefined) return pinned.tag !== now.tag;
  return differs(pinned.modified, now.modified);
};

/** Retry-After in seconds, from either of its forms; `undefined` when missing or malformed. */
export const parseRetryAfter = (headers: Headers, nowMs: number): number | undefined => {
  const text = headers['retry-after']?.trim();
  if (text === undefined) return undefined;
  const seconds = parseCount(text);
  if (seconds !== undefined) return seconds;
  const until = Date.parse(text);
  return Number.isNaN(until) ? undefined : Math.max(0, Math.ceil((until - nowMs) / 1000));
};

/** The fault in a status that carries no bytes of the object. `where` is a URL fit to be shown. */
export const statusFault = (
  response: Pick<HttpResponse, 'status' | 'headers'>,
  where: string,
  nowMs: number,
): TransferError => {
  const { status, headers } = response;
  if (status === 404 || status === 410) {
    return new TransferError('SourceNotFound', `${where} answered ${status}: there is no such file`);
  }
  if (status === 401 || status === 403 || status === 407) {
    return new TransferError('SourceForbidden', `${where} answered ${status}: credentials are missing or not accepted`);
  }
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const retryAfterSeconds = parseRetryAfter(headers, nowMs);
    const message = `${where} answered ${status}: the server is busy or broken`;
    return new TransferError(
      'SourceUnavailable',
      message,
      retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
    );
  }
  return new TransferError('SourceRefused', `${where} answered ${status}, which is not a file`);
};

export const changedFault = (where: string): TransferError =>
  new TransferError('SourceChanged', `${where} changed while it was being read`, { startOver: true });
