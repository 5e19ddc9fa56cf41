// Interprets the answers of an HTTP server: pure decisions from status and headers.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { expiryText, parseRetryAfter } from '#shared/clients/http/refusal.ts';
import { TransferError } from '#shared/transfer/fault.ts';

type Headers = HttpResponse['headers'];

/** An inclusive byte range of an object; `total` is undefined for `*`. */
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

/** `bytes 0-99/1000` or `bytes 0-99/*`; `undefined` if missing or malformed. */
export const parseContentRange = (headers: Headers): ContentRange | undefined => {
  const match = /^bytes\s+(\d+)-(\d+)\/(\d+|\*)$/i.exec(headers['content-range']?.trim() ?? '');
  const first = parseCount(match?.[1]);
  const last = parseCount(match?.[2]);
  if (match === null || first === undefined || last === undefined || last < first) return undefined;
  if (match[3] === '*') return { first, last };
  const total = parseCount(match[3]);
  return total === undefined || last >= total ? undefined : { first, last, total };
};

/** A Last-Modified is strong if it is this much older than the Date of the answer (RFC 9110, 8.8.2.2). */
const strongDateMs = 60_000;

/** The value for If-Range: a strong entity tag, else a date old enough to be strong. */
export const strongValidatorOf = (headers: Headers): string | undefined => {
  const tag = headers['etag']?.trim();
  if (tag !== undefined) return /^"[^"]*"$/.test(tag) ? tag : undefined;
  const modified = headers['last-modified']?.trim();
  const age = Date.parse(headers['date'] ?? '') - Date.parse(modified ?? '');
  return age >= strongDateMs ? modified : undefined;
};

/** Fields that must not change while one object is read; `undefined` if the server does not send them. */
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

/** Whether an answer is from another object than the pinned one. If both have a tag, dates are ignored. */
export const isOtherObject = (pinned: Identity, headers: Headers): boolean => {
  const now = identityOf(headers);
  if (pinned.tag !== undefined && now.tag !== undefined) return pinned.tag !== now.tag;
  return differs(pinned.modified, now.modified);
};

export interface ServerRefusal {
  readonly nowMs: number;
  /** Message of the server. */
  readonly reason?: string | undefined;
  /** Expiry of the URL, if it has expired. */
  readonly expired?: number | undefined;
  /** The address is not that of the source: its server redirected there. */
  readonly isRedirected?: boolean | undefined;
}

const forbidden = ({ reason, expired, isRedirected = false }: ServerRefusal): string => {
  const text = expiryText(reason, expired);
  if (text === undefined) return 'credentials are missing or not accepted';
  return isRedirected ? text : `${text}: create a new one that is valid for the whole transfer`;
};

const forbiddenStatuses = new Set([401, 403, 407]);
const absentStatuses = new Set([404, 410]);
const busyStatuses = new Set([408, 425, 429]);

/** The fault for a status without content. `where`: a redacted URL. */
export const statusFault = (
  { status, headers }: Pick<HttpResponse, 'status' | 'headers'>,
  where: string,
  refusal: ServerRefusal,
): TransferError => {
  const answered = `${where} answered ${status}${refusal.reason === undefined ? '' : ` (${refusal.reason})`}`;
  if (busyStatuses.has(status) || status >= 500) {
    const retryAfterSeconds = parseRetryAfter(headers['retry-after'], refusal.nowMs);
    const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    return new TransferError('SourceUnavailable', `${answered}: the server is busy or broken`, wait);
  }
  const isExpired = refusal.expired !== undefined && status >= 400;
  if (forbiddenStatuses.has(status) || isExpired)
    return new TransferError('SourceForbidden', `${answered}: ${forbidden(refusal)}`);
  if (absentStatuses.has(status)) return new TransferError('SourceNotFound', `${answered}: there is no such file`);
  return new TransferError('SourceRefused', `${answered}, which is not a file`);
};

export const changedFault = (where: string): TransferError =>
  new TransferError('SourceChanged', `${where} changed while it was being read`, { startOver: true });
