// Errors of an HTTP request before or during the body. Status codes are answers, not errors.
import { type AppErrorOptions, TableError, messageOf } from '#shared/runtime/errors.ts';
import { lookup } from '#shared/runtime/lookup.ts';

/** Codes of errors, and whether a retry can help. */
export const httpFaults = {
  /** The host resolves only to addresses that the policy rejects. */
  AddressRefused: { retryable: false },
  /** The server's certificate is not trusted. */
  CertificateRefused: { retryable: false },
  /** A credential is not accepted by the service that it is for, has expired, or does not permit what is asked. */
  CredentialsRefused: { retryable: false },
  /** The proxy denies the request. */
  ProxyRefused: { retryable: false },
  /** Too many redirects, or one without a target or to another scheme. */
  RedirectRefused: { retryable: false },
  /** A limit of the administrator does not allow this place. */
  SourceNotAllowed: { retryable: false },
  /** No connection: DNS, refused, no route. */
  Unreachable: { retryable: true },
  /** Connected, then no data. */
  Stalled: { retryable: true },
  /** Connected, then interrupted or invalid. */
  Interrupted: { retryable: true },
} as const;
export type HttpFault = keyof typeof httpFaults;

export class HttpFailure extends TableError<HttpFault> {
  constructor(code: HttpFault, message: string, options: AppErrorOptions = {}) {
    super(httpFaults, code, message, options);
  }
}

const unreachable = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EAI_NODATA',
  'EAI_NONAME',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const stalled = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);
const isCertificateCode = (code: string): boolean =>
  /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/.test(code);

/** Several addresses that failed are one AggregateError; the first error is enough. */
const codeOf = (error: unknown): string => {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  if (typeof error !== 'object' || error === null) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? codeOf(error.cause) : '';
};

/** Messages for codes that are unclear to users. */
const plainWords: Readonly<Record<string, string>> = {
  UND_ERR_SOCKET: 'the server closed it before the answer was complete',
  ECONNRESET: 'the server reset it (ECONNRESET)',
  EPIPE: 'the server closed it (EPIPE)',
};

/** What can be done about codes of connections that were never there. */
const remedies: Readonly<Record<string, string>> = {
  ENOTFOUND: 'DNS has no such name: correct the name, or set a proxy or a mirror that reaches it',
  EAI_AGAIN: 'DNS did not answer: try again, or look at the name servers of this network',
  ECONNREFUSED: 'nothing listens on this port: correct the address, or start the server',
};

const withRemedy = (code: string): string => {
  const remedy = lookup(remedies, code);
  return remedy === undefined ? code : `${code} (${remedy})`;
};

/** The status that a proxy answered to CONNECT: undici reports it only in its message. */
const proxyStatus = (error: unknown): number | undefined => {
  const [, status] = /^Proxy [A-Za-z ]+\((\d{3})\)/.exec(messageOf(error)) ?? [];
  return status === undefined ? undefined : Number(status);
};

/** The same for a request through a proxy, where the proxy itself may be the cause. */
export const toProxyFailure = (error: unknown, host: string, proxy: string): HttpFailure => {
  const status = proxyStatus(error);
  if (status === undefined) return toHttpFailure(error, `${host} (through the proxy ${proxy})`);
  const isFinal = status >= 400 && status < 500 && status !== 408 && status !== 429;
  const advice = 'an operator can exclude the host with NO_PROXY, or allow it at the proxy';
  const message = `the proxy ${proxy} answered ${status} instead of connecting to ${host}: ${advice}`;
  return new HttpFailure(isFinal ? 'ProxyRefused' : 'Unreachable', message, { cause: error });
};

/** An error of undici, TLS or the socket as a failure that names the host. */
export const toHttpFailure = (error: unknown, host: string): HttpFailure => {
  if (error instanceof HttpFailure) return error;
  const code = codeOf(error);
  const options = { cause: error };
  const detail = code === '' ? messageOf(error) : code;
  if (unreachable.has(code))
    return new HttpFailure('Unreachable', `cannot connect to ${host}: ${withRemedy(code)}`, options);
  if (stalled.has(code))
    return new HttpFailure('Stalled', `${host} accepted the connection but did not answer`, options);
  if (isCertificateCode(code)) {
    return new HttpFailure('CertificateRefused', `the certificate of ${host} is not trusted: ${detail}`, options);
  }
  return new HttpFailure(
    'Interrupted',
    `the connection to ${host} broke: ${lookup(plainWords, code) ?? detail}`,
    options,
  );
};
