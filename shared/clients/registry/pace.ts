// What registries said about how often they may be asked, for all who ask in one process. Passed to each registry client.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { RegistryFailure } from '#shared/clients/registry/errors.ts';

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

export const rateLimited = (host: string, seconds: number): RegistryFailure =>
  new RegistryFailure('RateLimited', `${host} takes no more requests for ${seconds} seconds`, {
    retryAfterSeconds: seconds,
  });
