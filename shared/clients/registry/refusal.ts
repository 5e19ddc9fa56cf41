// How a registry refuses: an answer that is no success as an error with the registry's own words, and how long to leave it alone after 429.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { redact } from '#shared/runtime/redact.ts';
import { type AppErrorOptions, TableError } from '#shared/runtime/errors.ts';

// How a registry refuses. The text is the registry's own, redacted, with what to do about it.

/** Kinds of failure, and whether asking again can help. */
const registryFaults = {
  /** Credentials are missing or not accepted. */
  Unauthorized: { retryable: false },
  /** No such repository, tag, digest or blob. */
  ImageNotFound: { retryable: false },
  /** The index has nothing for this platform. */
  PlatformAbsent: { retryable: false },
  /** What arrived is not what its digest says. */
  DigestMismatch: { retryable: true },
  /** Not an image, or one we do not understand. */
  InvalidImage: { retryable: false },
  /** 429 or 503: the registry wants to be left alone, and may say for how long. */
  RateLimited: { retryable: true },
  /** Another 5xx, or an answer that makes no sense. */
  RegistryFailed: { retryable: true },
} as const;
export type RegistryFault = keyof typeof registryFaults;

export class RegistryFailure extends TableError<RegistryFault> {
  constructor(code: RegistryFault, message: string, options: AppErrorOptions = {}) {
    super(registryFaults, code, message, options);
  }
}

/** Manifests, tokens and lists of tags; more is no honest answer. */
const mostBytes = 8 * 1024 * 1024;
const mostWords = 300;

/** The whole body, up to a limit. Throws RegistryFailure beyond it. */
export const readBody = async (response: HttpResponse, what: string, most = mostBytes): Promise<Buffer> => {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    parts.push(chunk);
    length += chunk.length;
    if (length > most) throw new RegistryFailure('InvalidImage', `${what} is larger than ${most} bytes`);
  }
  return Buffer.concat(parts);
};

export const readJson = async (response: HttpResponse, what: string): Promise<object> => {
  const bytes = await readBody(response, what);
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Told below.
  }
  throw new RegistryFailure('RegistryFailed', `${what} answered with something else than JSON`);
};

/** `errors: [{code, message}]` as the distribution specification has it. */
const wordsOf = async (response: HttpResponse): Promise<string> => {
  try {
    const { errors } = (await readJson(response, '')) as { errors?: { code?: string; message?: string }[] };
    const words = (errors ?? []).map(({ code, message }) =>
      [code, message].filter((text) => (text ?? '') !== '').join(': '),
    );
    return redact(words.join('; ')).slice(0, mostWords);
  } catch {
    return '';
  }
};

export interface RefusalContext {
  readonly host: string;
  readonly what: string;
  readonly pace: RegistryPace;
  readonly hasCredentials: boolean;
}

/** Reads the body. */
export const refusalOf = async (response: HttpResponse, context: RefusalContext): Promise<RegistryFailure> => {
  const { host, what, pace, hasCredentials } = context;
  const { status } = response;
  const words = await wordsOf(response);
  const said = `${host} answered ${status} for ${what}${words === '' ? '' : ` (${words})`}`;
  if (status === 429) return rateLimited(host, Math.max(1, pace.waitSeconds(host)));
  if (status === 401 || status === 403) {
    const hint = hasCredentials
      ? 'check the Secret of secretRef'
      : 'name a Secret with credentials in secretRef, or check the name';
    return new RegistryFailure('Unauthorized', `${said}: ${hint}`);
  }
  const seconds = pace.waitSeconds(host);
  const asked = seconds === 0 ? {} : { retryAfterSeconds: seconds };
  if (status === 503) return new RegistryFailure('RateLimited', said, asked);
  if (status === 404) return new RegistryFailure('ImageNotFound', `${said}: check repository, tag and digest`);
  return new RegistryFailure('RegistryFailed', said, asked);
};

/** What registries said about how often they may be asked, for all who ask in one process. Passed to each registry client. */
type Headers = HttpResponse['headers'];

export interface RegistryPace {
  /** Throws RateLimited, without a request, while the host wants to be left alone. */
  check(host: string): void;
  /** Takes over what an answer says: a refusal, or how much is left. */
  learn(host: string, response: Pick<HttpResponse, 'status' | 'headers'>): void;
  /** Seconds until the host may be asked again; 0: now. */
  waitSeconds(host: string): number;
}

/** Where a refusal does not say how long. */
const defaultWaitSeconds = 60;
const longestWaitSeconds = 24 * 3600;

/** Seconds or an HTTP date. */
export const parseRetryAfter = (text: string | undefined, nowMs: number): number | undefined => {
  const trimmed = text?.trim() ?? '';
  if (/^\d{1,9}$/.test(trimmed)) return Number(trimmed);
  const until = Date.parse(trimmed);
  return Number.isNaN(until) ? undefined : Math.max(0, Math.ceil((until - nowMs) / 1000));
};

/** `100;w=21600` as Docker Hub has it: requests left, and seconds the window lasts. */
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
  // The last request of a window: the next one would be refused, and tell no more than this.
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
  new RegistryFailure('RateLimited', `${host} takes no more requests for ${seconds} seconds`, {
    retryAfterSeconds: seconds,
  });
