// Sends typed events to a sink, with a deadline and the bounded retries of Knative's own sources, over any transport. Created by send.ts, and by Workers.
import { type Encoding, encodeEvent } from '#events/message.ts';
import type { CloudEvent } from '#events/event.ts';
import type { Post, Answer } from '#events/post.ts';
import { currentContext, newTrace, traceHeaders, traceOfExtensions } from '#shared/runtime/trace.ts';
import { withLimits } from '#shared/runtime/deadline.ts';
import { messageOf } from '#shared/runtime/errors.ts';

const retriedStatuses = new Set([404, 413, 425, 429, 502, 503, 504]);

/** The retries of Knative's sources for a direct sink: after 100, 200, 400, 800 and 1600 ms, about 3.1 s in all, then the event is dropped. */
const directPolicy: RetryPolicy = {
  retries: 5,
  delayMs: (retry) => 50 * 2 ** retry,
  isRetried: (attempt) => attempt.kind === 'unreachable' || retriedStatuses.has(attempt.answer.status),
};

const defaultTimeoutMs = 30_000;

/** Sends one event; never throws. The caller decides whether a lost event matters. */
export type Send = (event: CloudEvent, signal?: AbortSignal) => Promise<Delivery>;

export interface SenderOptions {
  /** URL that events are posted to. */
  readonly sink: string;
  readonly post: Post;
  readonly encoding?: Encoding;
  readonly policy?: RetryPolicy;
  /** Milliseconds for one attempt; 30 s by default, `none` to wait for an answer without limit. */
  readonly timeoutMs?: number | 'none';
  /** Headers of every request in addition to those of the event. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly sleep?: Sleep;
  /** Returns a bearer token, called before each event; without it none is sent. */
  readonly token?: (() => Promise<string | undefined>) | undefined;
}

export const createSenderOver = (options: SenderOptions): Send => {
  const { sink, post, encoding, policy = directPolicy, sleep: pause = sleep } = options;
  const timeoutMs = options.timeoutMs === 'none' ? undefined : (options.timeoutMs ?? defaultTimeoutMs);
  return async (event, signal) => {
    const message = encodeEvent(event, encoding);
    const trace = currentContext().trace ?? traceOfExtensions(event.extensions) ?? newTrace();
    const token = await options.token?.();
    const shown = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const headers = { ...message.headers, ...options.headers, ...traceHeaders(trace), ...shown };
    return deliver((limit) => post(sink, { ...message, headers }, limit), { policy, timeoutMs, sleep: pause, signal });
  };
};

// Attempts with back-off until an answer is final.

/** The result of one attempt: an answer, or the reason why there was none. */
export type Attempt =
  | { readonly kind: 'answered'; readonly answer: Answer }
  | { readonly kind: 'unreachable'; readonly message: string };

export interface RetryPolicy {
  /** Attempts after the first. */
  readonly retries: number;
  /** Milliseconds before the k-th retry, k = 1…retries. */
  delayMs(retry: number, attempt: Attempt): number;
  /** Whether this attempt is retried. Not called for a success. */
  isRetried(attempt: Attempt): boolean;
}

export interface Delivery {
  readonly isDelivered: boolean;
  readonly attempts: number;
  /** The last attempt. */
  readonly last: Attempt;
}

interface DeliveryOptions {
  readonly policy: RetryPolicy;
  /** Milliseconds one attempt may take; no limit by default. */
  readonly timeoutMs?: number | undefined;
  readonly sleep: Sleep;
  /** Delays an attempt until it may start, for example for a limit on concurrency. Its time-out starts then. */
  readonly gate?: Gate | undefined;
  /** Ends the delivery early; the last attempt is then the result. */
  readonly signal?: AbortSignal | undefined;
}

type Gate = <T>(work: () => Promise<T>) => Promise<T>;

/** Resolves after `ms`, or earlier when the signal is aborted. */
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

/** Calls `post` until it succeeds, the policy stops or the signal is aborted. Never throws. */
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

/** Describes a failed attempt. */
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
