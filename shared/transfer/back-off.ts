// How often and how long a source is retried within one attempt.
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, isRetryable } from '#shared/runtime/errors.ts';

const firstWaitMs = 500;
const longestWaitMs = 30_000;
/** A server may ask for a longer wait than our own back-off, but not for all of the attempt's time. */
const longestAskedWaitMs = 300_000;
/** Once this much has arrived, over as many connections as it took, tries are as many as at first. */
const progressBytes = 8 * 1024 * 1024;

export interface BackOffOptions {
  /** Tries after the first that bring no progress. */
  readonly retries: number;
  readonly signal: AbortSignal;
  /** Told before each wait. */
  readonly onRetry: (error: unknown, waitMs: number) => void;
  /** Waits; replaced in tests. */
  readonly wait?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
  /** 0..1, replaced in tests. */
  readonly random?: () => number;
}

export interface BackOff {
  /** Waits before the next try, or throws `error` when it is permanent or tries are used up. */
  afterFailure(error: unknown): Promise<void>;
  /** Bytes arrived: enough of them make earlier failures forgotten. */
  progressed(bytes: number): void;
}

const sleep = (ms: number, signal: AbortSignal): Promise<void> => delay(ms, undefined, { signal });

/** Half of the wait is fixed, half random, so that many workers do not come back together. */
const waitFor = (failures: number, error: unknown, random: () => number): number => {
  const asked = error instanceof AppError ? error.retryAfterSeconds : undefined;
  const backOff = Math.min(longestWaitMs, firstWaitMs * 2 ** (failures - 1));
  const own = backOff / 2 + (random() * backOff) / 2;
  return asked === undefined ? own : Math.max(own, Math.min(asked * 1000, longestAskedWaitMs));
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
