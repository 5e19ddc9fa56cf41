// The number of retries of a source within one attempt, and the delays between them.
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, isRetryable } from '#shared/runtime/errors.ts';

const firstWaitMs = 500;
const longestWaitMs = 30_000;
/** A server may request a longer delay than our own back-off, but not one as long as the whole attempt. */
const longestAskedWaitMs = 300_000;
/** After this many received bytes, over any number of connections, the retries start over. */
const progressBytes = 8 * 1024 * 1024;

export interface BackOffOptions {
  /** Retries after the first failure without progress. */
  readonly retries: number;
  readonly signal: AbortSignal;
  /** Called before each delay. */
  readonly onRetry: (error: unknown, waitMs: number) => void;
  /** Sleeps; replaced in tests. */
  readonly wait?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
  /** 0..1, replaced in tests. */
  readonly random?: () => number;
}

export interface BackOff {
  /** Waits before the next retry, or throws `error` if it is permanent or no retry is left. */
  afterFailure(error: unknown): Promise<void>;
  /** Bytes received: enough of them reset the number of failures. */
  progressed(bytes: number): void;
}

const sleep = (ms: number, signal: AbortSignal): Promise<void> => delay(ms, undefined, { signal });

/** One half of the delay is fixed, the other random, so that many workers do not retry at the same time. */
const waitFor = (failures: number, error: unknown, random: () => number): number => {
  const asked = error instanceof AppError ? error.retryAfterSeconds : undefined;
  const backOff = Math.min(longestWaitMs, firstWaitMs * 2 ** (failures - 1));
  const own = backOff / 2 + (random() * backOff) / 2;
  return asked === undefined ? own : Math.max(own, Math.min(asked * 1000, longestAskedWaitMs));
};

/** Until it succeeds, or fails for good. `toFault`: its errors as ours. Default: they are. */
export const withBackOff = async <T>(
  options: BackOffOptions,
  work: () => Promise<T>,
  toFault: (error: unknown) => unknown = (error) => error,
): Promise<T> => {
  const backOff = createBackOff(options);
  for (;;) {
    try {
      return await work();
    } catch (error) {
      await backOff.afterFailure(toFault(error));
    }
  }
};

export const createBackOff = (options: BackOffOptions): BackOff => {
  let failures = 0;
  let sinceRenewal = 0;
  return {
    afterFailure: async (error) => {
      options.signal.throwIfAborted();
      const isRenewed = sinceRenewal >= progressBytes;
      failures = isRenewed ? 1 : failures + 1;
      if (isRenewed) sinceRenewal = 0;
      if (!isRetryable(error) || failures > options.retries) throw error;
      const waitMs = waitFor(failures, error, options.random ?? Math.random);
      options.onRetry(error, waitMs);
      await (options.wait ?? sleep)(waitMs, options.signal).catch((reason: unknown) => {
        options.signal.throwIfAborted();
        throw reason;
      });
    },
    progressed: (bytes) => {
      sinceRenewal += bytes;
    },
  };
};
