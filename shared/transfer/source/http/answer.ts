// Interprets the answers of an HTTP server: pure decisions from status and headers.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { redact } from '#shared/runtime/redact.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { lookup } from '#shared/runtime/lookup.ts';

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

/** Retry-After in seconds, from either of its formats; `undefined` if missing or malformed. */
export const parseRetryAfter = (headers: Headers, nowMs: number): number | undefined => {
  const text = headers['retry-after']?.trim();
  if (text === undefined) return undefined;
  const seconds = parseCount(text);
  if (seconds !== undefined) return seconds;
  const until = Date.parse(text);
  return Number.isNaN(until) ? undefined : Math.max(0, Math.ceil((until - nowMs) / 1000));
};

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

const elementIn = (xml: string, name: string): string =>
  (new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? '').replace(
    /&(amp|lt|gt|quot|apos);/g,
    (_, entity: string) => lookup(entities, entity) ?? '',
  );

const longestReason = 160;

/** The query of a URL in a server's message may be a credential. */
const queryInText = /(\/[^\s?"<>]*)\?[^\s"<>]+/g;

/**
 * The server's own error message: code and message of an object store's XML, or the first line of a plain text. Without HTML pages, and without
 * anything that may be a secret.
 */
export const refusalMessage = (body: string, contentType: string | undefined): string | undefined => {
  const isXml = /<Error[\s>]/.test(body.slice(0, 512));
  const isText = contentType === undefined || contentType.trim().toLowerCase().startsWith('text/plain');
  const parts = isXml ? ['Code', 'Message'].map((name) => elementIn(body, name)) : [isText ? firstLine(body) : ''];
  const message = parts.filter((part) => part.trim() !== '').join(': ');
  // oxlint-disable-next-line no-control-regex
  const line = message.replace(/[\u0000-\u001f\u007f-\u009f\ufffd\s]+/g, ' ').trim();
  const shown = redact(line.replace(queryInText, '$1'));
  if (shown === '') return undefined;
  return shown.length <= longestReason ? shown : `${shown.slice(0, longestReason)}…`;
};

const firstLine = (text: string): string => (/^\s*</.test(text) ? '' : (text.trim().split(/[\r\n]/)[0] ?? ''));

/** `20260301T120000Z`, as in signatures. */
const signedAt = (text: string | null): number => {
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text ?? '') ?? [];
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
};

/** Expiry of a signed URL in ms since the epoch; `undefined`: not expired, or unknown. S3, Google Cloud, Azure, CloudFront. */
export const expiryOf = ({ searchParams }: URL, nowMs: number): number | undefined => {
  const lasting = ['X-Amz', 'X-Goog'].map(
    (name) =>
      signedAt(searchParams.get(`${name}-Date`)) + Number(searchParams.get(`${name}-Expires`) ?? Number.NaN) * 1000,
  );
  const fixed = [Number(searchParams.get('Expires') ?? Number.NaN) * 1000, Date.parse(searchParams.get('se') ?? '')];
  return [...lasting, ...fixed].find((time) => time <= nowMs);
};

export interface ServerRefusal {
  readonly nowMs: number;
  /** Message of the server. */
  readonly reason?: string | undefined;
  /** Expiry of the URL, if it has expired. */
  readonly expired?: number | undefined;
}

const forbidden = ({ reason, expired }: ServerRefusal): string => {
  if (expired !== undefined)
    return `the signed address expired at ${new Date(expired).toISOString()}: create a new one that is valid for the whole transfer`;
  if (/expired|ExpiredToken/i.test(reason ?? ''))
    return 'the signed address has expired: create a new one that is valid for the whole transfer';
  return 'credentials are missing or not accepted';
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
    const retryAfterSeconds = parseRetryAfter(headers, refusal.nowMs);
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
