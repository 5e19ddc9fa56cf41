// How an HTTP exchange fails before or while bytes flow. Status codes are answers, not failures.
import { type AppErrorOptions, TableError, messageOf } from '#shared/runtime/errors.ts';

/** Kinds of failure, and whether trying again can help. */
export const httpFaults = {
  /** The name leads only to addresses that the policy refuses. */
  AddressRefused: { retryable: false },
  /** The server's certificate is not trusted. */
  CertificateRefused: { retryable: false },
  /** The proxy will not let us through. */
  ProxyRefused: { retryable: false },
  /** Redirects without end, without target or to another scheme. */
  RedirectRefused: { retryable: false },
  /** No connection: DNS, refused, no route. */
  Unreachable: { retryable: true },
  /** Connected, then silence. */
  Stalled: { retryable: true },
  /** Connected, then cut or garbled. */
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

/** Several addresses tried and failed arrive as one AggregateError: the first tells enough. */
const codeOf = (error: unknown): string => {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  if (typeof error !== 'object' || error === null) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? codeOf(error.cause) : '';
};

/** Codes that nobody but the client's authors can read. */
const plainWords: Readonly<Record<string, string>> = {
  UND_ERR_SOCKET: 'the other side closed it before the answer was complete',
  ECONNRESET: 'the other side reset it (ECONNRESET)',
  EPIPE: 'the other side closed it (EPIPE)',
};

/** The status a proxy answered with in place of opening a way: undici tells it in its message alone. */
const proxyStatus = (error: unknown): number | undefined => {
  const [, status] = /^Proxy [A-Za-z ]+\((\d{3})\)/.exec(messageOf(error)) ?? [];
  return status === undefined ? undefined : Number(status);
};

/** The same of a request that went through a proxy, which may itself be what fails. */
export const toProxyFailure = (error: unknown, host: string, proxy: string): HttpFailure => {
  const status = proxyStatus(error);
  if (status === undefined) return toHttpFailure(error, `${host} (through the proxy ${proxy})`);
  const isFinal = status >= 400 && status < 500 && status !== 408 && status !== 429;
  const advice = 'an operator can except the host in NO_PROXY, or allow it at the proxy';
  const message = `the proxy ${proxy} answered ${status} in place of connecting to ${host}: ${advice}`;
  return new HttpFailure(isFinal ? 'ProxyRefused' : 'Unreachable', message, { cause: error });
};

/** What undici, TLS or the socket threw, as a failure that says which host. */
export const toHttpFailure = (error: unknown, host: string): HttpFailure => {
  if (error instanceof HttpFailure) return error;
  const code = codeOf(error);
  const options = { cause: error };
  const detail = code === '' ? messageOf(error) : code;
  if (unreachable.has(code)) return new HttpFailure('Unreachable', `cannot connect to ${host}: ${detail}`, options);
  if (stalled.has(code))
    return new HttpFailure('Stalled', `${host} accepted the connection but did not answer`, options);
  if (isCertificateCode(code)) {
    return new HttpFailure('CertificateRefused', `the certificate of ${host} is not trusted: ${detail}`, options);
  }
  return new HttpFailure('Interrupted', `the connection to ${host} broke: ${plainWords[code] ?? detail}`, options);
};
