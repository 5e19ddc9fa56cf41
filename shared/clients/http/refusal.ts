// Why a server or an object store rejects a request, from its answer and the requested URL.
import { lookup } from '#shared/runtime/lookup.ts';
import { redact } from '#shared/runtime/redact.ts';

/** Limit for the body of an error; messages are short. */
export const mostErrorBytes = 4096;

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

const unescaped = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|apos);/g, (_, entity: string) => lookup(entities, entity) ?? '');

export const elementIn = (xml: string, name: string): string =>
  unescaped(new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? '');

const longestReason = 160;

/** The query of a URL in a server's message may be a credential. */
const queryInText = /(\/[^\s?"<>]*)\?[^\s"<>]+/g;

/**
 * The server's own error message: code and message of an object store's XML, the first line of a plain text, or the title of an HTML page.
 * Without anything that may be a secret.
 */
export const refusalMessage = (body: string, contentType: string | undefined): string | undefined => {
  const isXml = /<Error[\s>]/.test(body.slice(0, 512));
  const isText = contentType === undefined || contentType.trim().toLowerCase().startsWith('text/plain');
  const parts = isXml
    ? ['Code', 'Message'].map((name) => elementIn(body, name))
    : [isText ? firstLine(body) : titleOf(body)];
  const message = parts.filter((part) => part.trim() !== '').join(': ');
  // oxlint-disable-next-line no-control-regex
  const line = message.replace(/[\u0000-\u001f\u007f-\u009f\ufffd\s]+/g, ' ').trim();
  const shown = redact(line.replace(queryInText, '$1'));
  if (shown === '') return undefined;
  return shown.length <= longestReason ? shown : `${shown.slice(0, longestReason)}…`;
};

const titleOf = (page: string): string => unescaped(/<title[^>]*>([^<]*)<\/title>/i.exec(page)?.[1] ?? '');

const firstLine = (text: string): string =>
  /^\s*</.test(text) ? titleOf(text) : (text.trim().split(/[\r\n]/)[0] ?? '');

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

/** States that a signed URL has expired, according to the URL or to the message of the server; `undefined`: neither. */
export const expiryText = (reason: string | undefined, expired: number | undefined): string | undefined => {
  if (expired !== undefined) return `the signed address expired at ${new Date(expired).toISOString()}`;
  return /expired|ExpiredToken/i.test(reason ?? '') ? 'the signed address has expired' : undefined;
};

/** Seconds of a Retry-After, from either of its formats; `undefined` if missing or malformed. */
export const parseRetryAfter = (text: string | undefined, nowMs: number): number | undefined => {
  const trimmed = text?.trim() ?? '';
  if (/^\d{1,9}$/.test(trimmed)) return Number(trimmed);
  const until = Date.parse(trimmed);
  return Number.isNaN(until) ? undefined : Math.max(0, Math.ceil((until - nowMs) / 1000));
};
