// Errors of a registry: an unsuccessful answer as an error with the registry's own message, and the delay after 429.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { expiryOf, expiryText, mostErrorBytes, refusalMessage, parseRetryAfter } from '#shared/clients/http/refusal.ts';
import { parseJson } from '#shared/runtime/json.ts';
import { readUpTo } from '#shared/runtime/read-bytes.ts';
import { redact } from '#shared/runtime/redact.ts';
import { type AppErrorOptions, TableError } from '#shared/runtime/errors.ts';

// Error answers of a registry: the registry's own message, redacted, with advice.

/** Codes of errors, and whether a retry can help. */
const registryFaults = {
  /** Credentials are missing or rejected. */
  Unauthorized: { retryable: false },
  /** No such repository, tag, digest or blob. */
  ImageNotFound: { retryable: false },
  /** The index has no image for this platform. */
  PlatformAbsent: { retryable: false },
  /** The received bytes do not match their digest. */
  DigestMismatch: { retryable: true },
  /** Not an image, or an unsupported format. */
  InvalidImage: { retryable: false },
  /** 429 or 503: the registry limits requests, and may say for how long. */
  RateLimited: { retryable: true },
  /** Another 5xx, or an invalid answer. */
  RegistryFailed: { retryable: true },
} as const;
export type RegistryFault = keyof typeof registryFaults;

export class RegistryFailure extends TableError<RegistryFault> {
  constructor(code: RegistryFault, message: string, options: AppErrorOptions = {}) {
    super(registryFaults, code, message, options);
  }
}

/**
 * Limit of manifests, tokens and pages of tags: registries take no larger manifest. JSON that is made for it takes eighty times its size while it is
 * parsed.
 */
const mostBytes = 4 * 1024 * 1024;
const mostErrorLength = 300;

/** The whole body. Throws RegistryFailure if it exceeds the limit. */
export const readBody = async (response: HttpResponse, what: string, most = mostBytes): Promise<Buffer> => {
  const { bytes, isCut } = await readUpTo(response.body, most);
  if (isCut) throw new RegistryFailure('InvalidImage', `${what} is larger than ${most} bytes`);
  return bytes;
};

export const readJson = async (response: HttpResponse, what: string): Promise<object> => {
  const bytes = await readBody(response, what);
  const value = parseJson(bytes.toString('utf8'));
  if (typeof value === 'object' && value !== null) return value;
  throw new RegistryFailure('RegistryFailed', `${what} answered with something other than JSON`);
};

/** `errors: [{code, message}]` as the distribution specification has it. */
const errorsOf = async (response: HttpResponse): Promise<string> => {
  try {
    const { errors } = (await readJson(response, '')) as { errors?: { code?: string; message?: string }[] };
    const messages = (errors ?? []).map(({ code, message }) =>
      [code, message].filter((text) => (text ?? '') !== '').join(': '),
    );
    return redact(messages.join('; ')).slice(0, mostErrorLength);
  } catch {
    return '';
  }
};

export interface RefusalContext {
  readonly host: string;
  readonly what: string;
  readonly pace: RegistryPace;
  readonly hasCredentials: boolean;
  /** Where the registry redirected to; `undefined`: it answered itself. */
  readonly store?: URL | undefined;
}

/** Reads the body. */
export const refusalOf = async (response: HttpResponse, context: RefusalContext): Promise<RegistryFailure> => {
  const { host, what, pace, hasCredentials, store } = context;
  if (store !== undefined) return storeRefusal(response, context, store);
  const { status } = response;
  const reported = await errorsOf(response);
  const message = `${host} answered ${status} for ${what}${reported === '' ? '' : ` (${reported})`}`;
  if (status === 429) return rateLimited(host, Math.max(1, pace.waitSeconds(host)));
  if (status === 401 || status === 403) {
    const hint = hasCredentials
      ? 'check the Secret of secretRef'
      : 'name a Secret with credentials in secretRef, or check the name';
    return new RegistryFailure('Unauthorized', `${message}: ${hint}`);
  }
  const seconds = pace.waitSeconds(host);
  const asked = seconds === 0 ? {} : { retryAfterSeconds: seconds };
  if (status === 503) return new RegistryFailure('RateLimited', message, asked);
  if (status === 404) return new RegistryFailure('ImageNotFound', `${message}: check repository, tag and digest`);
  return new RegistryFailure('RegistryFailed', message, asked);
};

const expiryAdvice = 'the clocks of the registry and of its store may differ';

/** The refusal of a store that the registry redirected to, which knows no credentials of ours: the registry signed the address. Reads the body. */
const storeRefusal = async (
  response: HttpResponse,
  { host, what, pace }: RefusalContext,
  store: URL,
): Promise<RegistryFailure> => {
  const { status, headers } = response;
  const body = await readSome(response).catch(() => '');
  const reason = refusalMessage(body, headers['content-type']);
  const expiry = expiryText(reason, expiryOf(store, Date.now()));
  const answered = `${host} redirects to ${store.host}, which answered ${status} for ${what}${reason === undefined ? '' : ` (${reason})`}`;
  const message = expiry === undefined ? answered : `${answered}: ${expiry}; ${expiryAdvice}`;
  const seconds = pace.waitSeconds(host);
  const asked = seconds === 0 ? {} : { retryAfterSeconds: seconds };
  if (status === 429 || status === 503) return new RegistryFailure('RateLimited', message, asked);
  if (status === 404) return new RegistryFailure('ImageNotFound', message);
  // The registry signs another address for the next request.
  if (expiry !== undefined || status >= 500) return new RegistryFailure('RegistryFailed', message, asked);
  return new RegistryFailure(status === 401 || status === 403 ? 'Unauthorized' : 'RegistryFailed', message);
};

/** The beginning of a body. */
const readSome = async (response: HttpResponse): Promise<string> => {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of response.body) {
    parts.push(part);
    length += part.length;
    if (length >= mostErrorBytes) break;
  }
  return Buffer.concat(parts).subarray(0, mostErrorBytes).toString('utf8');
};

/** Rate limits reported by registries, shared by all clients in one process. Passed to each registry client. */
type Headers = HttpResponse['headers'];

export interface RegistryPace {
  /** Throws RateLimited, without a request, while the host must not be called. */
  check(host: string): void;
  /** Records the rate limit of an answer: an error, or the remaining requests. */
  learn(host: string, response: Pick<HttpResponse, 'status' | 'headers'>): void;
  /** Seconds until the next request is allowed; 0: now. */
  waitSeconds(host: string): number;
}

/** Delay if the error does not specify one. */
const defaultWaitSeconds = 60;
const longestWaitSeconds = 24 * 3600;

/** `100;w=21600` as sent by Docker Hub: remaining requests, and length of the window in seconds. */
const parseLimit = (text: string | undefined) => {
  const match = /^\s*(\d{1,9})(?:\s*;\s*w=(\d{1,9}))?/.exec(text ?? '');
  return match === null ? undefined : { count: Number(match[1]), windowSeconds: Number(match[2] ?? 0) };
};

const secondsOf = (
  { status, headers }: { readonly status: number; readonly headers: Headers },
  nowMs: number,
): number => {
  const asked = parseRetryAfter(headers['retry-after'], nowMs);
  if (status === 429) return asked ?? defaultWaitSeconds;
  if (status === 503) return asked ?? 0;
  const left = parseLimit(headers['ratelimit-remaining']);
  // The last request of a window: the next one would be rejected.
  return left?.count === 0 ? Math.max(asked ?? 0, Math.min(left.windowSeconds, 3600)) : 0;
};

/** `now` is milliseconds since the epoch. */
export const createRegistryPace = (now: () => number): RegistryPace => {
  const until = new Map<string, number>();
  const waitSeconds = (host: string): number => Math.max(0, Math.ceil(((until.get(host) ?? 0) - now()) / 1000));
  return {
    waitSeconds,
    check: (host) => {
      const seconds = waitSeconds(host);
      if (seconds > 0) throw rateLimited(host, seconds);
    },
    learn: (host, response) => {
      const seconds = Math.min(secondsOf(response, now()), longestWaitSeconds);
      if (seconds > 0) until.set(host, Math.max(until.get(host) ?? 0, now() + seconds * 1000));
    },
  };
};

const rateLimited = (host: string, seconds: number): RegistryFailure =>
  new RegistryFailure('RateLimited', `${host} accepts no more requests for ${seconds} seconds`, {
    retryAfterSeconds: seconds,
  });
