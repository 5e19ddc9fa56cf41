// Notifies import-object about one object, by a CloudEvent. Called by relay.ts.
import { buildStoredObjectChanged } from '#events/build.ts';
import { encodeEvent } from '#events/message.ts';
import type { ObjectHint } from '#shared/object-import/notification.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { newTrace, traceHeaders } from '#shared/runtime/trace.ts';

// The used part of Cloudflare's queue API. Its own types would replace those of Node for the whole repository.

export interface QueueMessage {
  readonly id: string;
  readonly timestamp: Date;
  readonly body: unknown;
  /** Deliveries of this message, including this one. */
  readonly attempts: number;
  /** Acknowledges the message. */
  ack(): void;
  /** Delivers the message again, after this many seconds (12 hours at most). */
  retry(options?: { readonly delaySeconds?: number }): void;
}

export interface MessageBatch {
  readonly queue: string;
  readonly messages: readonly QueueMessage[];
}

export interface QueueProducer {
  send(body: unknown, options?: { readonly contentType?: 'json' | 'bytes' }): Promise<unknown>;
}

interface AdmissionServer {
  /** URL of import-object. */
  readonly url: string;
  /** NOTIFICATION_TOKEN of import-object. */
  readonly token: string;
}

/** Identifies the message in logs. */
interface About {
  /** The same for a notification that was sent twice. */
  readonly id: string;
  /** When the queue received it. */
  readonly time: Date;
}

export type Notify = (hint: ObjectHint, about: About) => Promise<QueueAnswer>;

/** Milliseconds; import-object answers within 25 s in any case. */
const timeoutMs = 30_000;
/** Characters of an answer that are logged. */
const mostAnswerChars = 300;

/** Never throws. */
export const createNotifier =
  ({ url, token }: AdmissionServer): Notify =>
  async (hint, { id, time }) => {
    const event = buildStoredObjectChanged(hint, {
      id,
      source: `bullion.dev/r2-notifications/${encodeURIComponent(hint.bucket)}`,
      time: time.toISOString(),
    });
    const { headers, body } = encodeEvent(event);
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, ...traceHeaders(newTrace()), authorization: `Bearer ${token}` },
        body: typeof body === 'string' ? body : new Uint8Array(body),
        // The token must be sent only to this address.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      });
      const message = (await response.text()).trim().slice(0, mostAnswerChars);
      const retryAfter = response.headers.get('retry-after') ?? undefined;
      return { kind: 'answered', status: response.status, retryAfter, message };
    } catch (error) {
      return { kind: 'unreachable', message: `import-object cannot be reached: ${messageOf(error)}` };
    }
  };

// Decides about a message from the answer of import-object: pure.

/** The result of a notification. */
export type QueueAnswer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly retryAfter?: string | undefined;
      readonly message: string;
    }
  | { readonly kind: 'unreachable'; readonly message: string };

/**
 * - `ack`: import-object has accepted it.
 * - `retry`: the queue delivers it again, and moves it to the dead letters after `max_retries`.
 * - `bury`: it would be rejected each time, so it is moved to the dead letters now.
 */
export type QueueVerdict =
  | { readonly do: 'ack' }
  | { readonly do: 'retry'; readonly afterSeconds: number; readonly reason: string }
  | { readonly do: 'bury'; readonly reason: string };

/** After the first few retries the cluster is probably down, rather than a request lost. */
const longestSeconds = 900;

/** Statuses caused by the message itself: a retry gives the same result. */
const refusesMessage = new Set([400, 413, 414, 415, 422]);

/** `attempts`: deliveries so far; `baseSeconds`: delay after the first one, doubled each time. */
export const verdictOf = (answer: QueueAnswer, attempts: number, baseSeconds: number): QueueVerdict => {
  if (answer.kind === 'unreachable') {
    return { do: 'retry', afterSeconds: pause(attempts, baseSeconds), reason: answer.message };
  }
  const { status, message } = answer;
  if (status >= 200 && status < 300) return { do: 'ack' };
  const reason = message === '' ? `HTTP ${status}` : `HTTP ${status}: ${message}`;
  if (refusesMessage.has(status)) return { do: 'bury', reason };
  // A wrong token, address or route will be fixed, just as an unavailable cluster recovers.
  const asked = Number(answer.retryAfter);
  const afterSeconds = Math.max(pause(attempts, baseSeconds), Number.isFinite(asked) ? asked : 0);
  return { do: 'retry', afterSeconds: Math.min(afterSeconds, longestSeconds), reason };
};

const pause = (attempts: number, baseSeconds: number): number =>
  Math.min(baseSeconds * 2 ** Math.max(0, Math.min(attempts, 30) - 1), longestSeconds);
