// Attempts with back-off until an answer is final. Called by send.ts (direct delivery) and by the broker (DeliverySpec).
import type { Answer } from '#events/post.ts';
import { withLimits } from '#shared/runtime/deadline.ts';
import { messageOf } from '#shared/runtime/errors.ts';

/** What one attempt brought: an answer, or the reason there was none. */
export type Attempt =
  | { readonly kind: 'answered'; readonly answer: Answer }
  | { readonly kind: 'unreachable'; readonly message: string };

export interface RetryPolicy {
  /** Attempts after the first. */
  readonly retries: number;
  /** Milliseconds before the k-th retry, k = 1…retries. */
  delayMs(retry: number, attempt: Attempt): number;
  /** Whether this attempt deserves another one. Never asked about a success. */
  isRetried(attempt: Attempt): boolean;
}

export interface Delivery {
  readonly isDelivered: boolean;
  readonly attempts: number;
  /** The last attempt. */
  readonly last: Attempt;
}

export interface DeliveryOptions {
  readonly policy: RetryPolicy;
  /** Milliseconds one attempt may take; no limit when left out. */
  readonly timeoutMs?: number | undefined;
  readonly sleep: Sleep;
  /** Holds an attempt until it may begin, such as for a limit on concurrency. Its time-out starts then. */
  readonly gate?: Gate | undefined;
  /** Ends the delivery early; the last attempt then counts. */
  readonly signal?: AbortSignal | undefined;
}

type Gate = <T>(work: () => Promise<T>) => Promise<T>;

/** Resolves after `ms`, early when the signal fires. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

export const sleep: Sleep = (ms, signal) =>
  new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const wake = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal?.addEventListener('abort', wake, { once: true });
  });

/** Tries `post` until it succeeds, the policy gives up or the signal fires. Never throws. */
export const deliver = async (
  post: (signal: AbortSignal) => Promise<Answer>,
  options: DeliveryOptions,
): Promise<Delivery> => {
  const { policy, signal, gate = (work) => work() } = options;
  for (let attempts = 1; ; attempts += 1) {
    const last = await gate(() => attemptOnce(post, options));
    if (isSuccess(last)) return { isDelivered: true, attempts, last };
    const isOver = attempts > policy.retries || isAborted(signal) || !policy.isRetried(last);
    if (isOver) return { isDelivered: false, attempts, last };
    await options.sleep(policy.delayMs(attempts, last), signal);
  }
};

/** What to say about an attempt that failed. */
export const wordsOf = (attempt: Attempt): string =>
  attempt.kind === 'unreachable' ? attempt.message : `status ${attempt.answer.status}`;

const isAborted = (signal: AbortSignal | undefined): boolean => signal?.aborted ?? false;

const isSuccess = (attempt: Attempt): boolean =>
  attempt.kind === 'answered' && attempt.answer.status >= 200 && attempt.answer.status < 300;

const attemptOnce = async (
  post: (signal: AbortSignal) => Promise<Answer>,
  { timeoutMs, signal }: DeliveryOptions,
): Promise<Attempt> => {
  try {
    return { kind: 'answered', answer: await withLimits({ timeoutMs, signal }, post) };
  } catch (error) {
    return { kind: 'unreachable', message: messageOf(error) };
  }
};
