// State of one HTTP source between requests; all its requests are sent here.
import type { HttpClient, HttpResponse } from '#shared/clients/http/client.ts';
import { HttpFailure, type HttpFault } from '#shared/clients/http/errors.ts';
import { expiryOf, mostErrorBytes, refusalMessage } from '#shared/clients/http/refusal.ts';
import { type Destination, followRedirects, toDestination } from '#shared/clients/http/redirect.ts';
import { readUpTo } from '#shared/runtime/read-bytes.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { type BackOff, type BackOffOptions, createBackOff, withBackOff } from '#shared/transfer/back-off.ts';
import type { TransferFault } from '#shared/transfer/report.ts';
import { type Identity, statusFault } from '#shared/transfer/source/http/answer.ts';

export interface HttpSourceOptions {
  readonly client: HttpClient;
  /** With user info, if any: it becomes basic authorization for this origin. */
  readonly url: URL;
  /** Sent only to the URL's own origin. Names in lower case. */
  readonly secretHeaders: Readonly<Record<string, string>>;
  readonly retries: number;
  readonly signal: AbortSignal;
  readonly onRetry: (error: unknown, waitMs: number) => void;
  readonly now?: () => number;
  /** Delays between retries; replaced in tests. */
  readonly wait?: BackOffOptions['wait'];
}

/** The object that reads are pinned to. */
export interface Pinned {
  /** The server at the end of the redirects. */
  readonly final: Destination;
  readonly identity: Identity;
  readonly size: number | undefined;
}

export interface HttpSession {
  readonly options: HttpSourceOptions;
  /** The redacted URL. */
  readonly where: string;
  readonly origin: Destination;
  pinned: Pinned | undefined;
  /** The server supported ranges at first, but then stopped. */
  rangesBroken: boolean;
  receivedBytes: number;
}

export const createSession = (options: HttpSourceOptions): HttpSession => ({
  options,
  where: redactUrl(options.url.href),
  origin: toDestination(options.url, options.secretHeaders),
  pinned: undefined,
  rangesBroken: false,
  receivedBytes: 0,
});

export const requirePinned = (session: HttpSession): Pinned => {
  if (session.pinned === undefined)
    throw new TransferError('InternalFault', 'the source was read before it was probed');
  return session.pinned;
};

const faultOfFailure: Readonly<Record<HttpFault, TransferFault>> = {
  AddressRefused: 'SourceAddressRefused',
  SourceNotAllowed: 'SourceNotAllowed',
  CertificateRefused: 'SourceRefused',
  CredentialsRefused: 'SourceForbidden',
  RedirectRefused: 'SourceRefused',
  ProxyRefused: 'SourceRefused',
  Unreachable: 'SourceUnreachable',
  Stalled: 'SourceStalled',
  Interrupted: 'SourceInterrupted',
};

export const toTransferError = (error: unknown): unknown =>
  error instanceof HttpFailure ? new TransferError(faultOfFailure[error.code], error.message, { cause: error }) : error;

export const backOffOf = ({ options }: HttpSession): BackOff => createBackOff(options);

/** Repeats `work` while retries are left. */
export const withRetries = <T>({ options }: HttpSession, work: () => Promise<T>): Promise<T> =>
  withBackOff(options, work, (error) => {
    const fault = toTransferError(error);
    if (fault instanceof TransferError && fault.startOver) throw fault;
    return fault;
  });

/** A pinned redirect target may expire (signed URLs do); then the redirect is followed again. */
const isExpiry = (status: number): boolean => status === 401 || status === 403 || status === 404 || status === 410;

/** One request to the pinned server, or through the redirects if none is pinned. */
export const ask = async (session: HttpSession, headers: Readonly<Record<string, string>>) => {
  const { options, origin, pinned } = session;
  const from = pinned?.final ?? origin;
  const answer = await followRedirects(options.client, { origin: from, headers, signal: options.signal });
  if (pinned !== undefined && from.url.href !== origin.url.href && isExpiry(answer.response.status)) {
    session.pinned = { ...pinned, final: origin };
    const { reason, expired } = await explain(session, answer);
    const when = expired === undefined ? 'has expired' : `expired at ${new Date(expired).toISOString()}`;
    const cause = reason === undefined ? '' : ` (${reason})`;
    throw new TransferError('SourceUnavailable', `${session.where} redirected to an address that ${when}${cause}`);
  }
  if (pinned !== undefined) session.pinned = { ...pinned, final: answer.final };
  return answer;
};

/** An answer, and the URL that it came from. */
export interface HttpAnswer {
  readonly response: HttpResponse;
  readonly final: Destination;
}

/** Reads the body. */
const explain = async (session: HttpSession, { response, final }: HttpAnswer) => {
  const nowMs = (session.options.now ?? Date.now)();
  const body = await readCounted(session, response, mostErrorBytes).catch(() => Buffer.alloc(0));
  const reason = refusalMessage(body.toString('utf8'), response.headers['content-type']);
  return { nowMs, reason, expired: expiryOf(final.url, nowMs) };
};

/** Discards an answer and throws its fault, with the server's own message. */
export const refuse = async (session: HttpSession, answered: HttpAnswer): Promise<never> => {
  const { where, origin } = session;
  const { url } = answered.final;
  const isRedirected = url.href !== origin.url.href;
  const asked = isRedirected ? `${redactUrl(url.href)}, which ${where} redirects to,` : where;
  throw statusFault(answered.response, asked, { ...(await explain(session, answered)), isRedirected });
};

export const giveUp = (response: HttpResponse, fault: TransferError): never => {
  response.discard();
  throw fault;
};

/** At most `limit` bytes of a body; the connection is closed if more would follow. Counts the received bytes. */
export const readCounted = async (session: HttpSession, response: HttpResponse, limit: number): Promise<Buffer> => {
  const { bytes, received } = await readUpTo(response.body, limit);
  session.receivedBytes += received;
  return bytes;
};
