// Typed event → sink, with a deadline and the bounded retries of Knative's own sources, over any way to post. Made by send.ts, and by Workers.
import { type Delivery, type RetryPolicy, type Sleep, deliver, sleep as realSleep } from '#events/delivery.ts';
import { type Encoding, encodeEvent } from '#events/encode.ts';
import type { CloudEvent } from '#events/event.ts';
import type { Post } from '#events/post.ts';
import { currentContext } from '#shared/runtime/context.ts';
import { newTrace, traceHeaders, traceOfExtensions } from '#shared/runtime/trace.ts';

const retriedStatuses = new Set([404, 413, 425, 429, 502, 503, 504]);

/** What Knative's sources do with a direct sink: 100, 200, 400, 800 and 1600 ms, about 3.1 s in all, then the event is dropped. */
const directPolicy: RetryPolicy = {
  retries: 5,
  delayMs: (retry) => 50 * 2 ** retry,
  isRetried: (attempt) => attempt.kind === 'unreachable' || retriedStatuses.has(attempt.answer.status),
};

const defaultTimeoutMs = 30_000;

/** Sends one event; never throws. Whether a lost event matters is for the caller to say. */
export type Send = (event: CloudEvent, signal?: AbortSignal) => Promise<Delivery>;

export interface SenderOptions {
  /** URL that events are posted to. */
  readonly sink: string;
  readonly post: Post;
  readonly encoding?: Encoding;
  readonly policy?: RetryPolicy;
  /** Milliseconds for one attempt; 30 s when left out, `none` to wait for an answer as long as it takes. */
  readonly timeoutMs?: number | 'none';
  /** Headers of every request beside the event's. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly sleep?: Sleep;
  /** A bearer token to show, asked for before each event; without one none is shown. */
  readonly token?: (() => Promise<string | undefined>) | undefined;
}

export const createSenderOver = (options: SenderOptions): Send => {
  const { sink, post, encoding, policy = directPolicy, sleep = realSleep } = options;
  const timeoutMs = options.timeoutMs === 'none' ? undefined : (options.timeoutMs ?? defaultTimeoutMs);
  return async (event, signal) => {
    const message = encodeEvent(event, encoding);
    const trace = currentContext().trace ?? traceOfExtensions(event.extensions) ?? newTrace();
    const token = await options.token?.();
    const shown = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const headers = { ...message.headers, ...options.headers, ...traceHeaders(trace), ...shown };
    return deliver((limit) => post(sink, { ...message, headers }, limit), { policy, timeoutMs, sleep, signal });
  };
};
