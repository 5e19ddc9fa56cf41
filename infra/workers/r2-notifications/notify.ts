// Tells import-object of one object, as a CloudEvent. Called by relay.ts.
import { buildStoredObjectChanged } from '#events/build.ts';
import { encodeEvent } from '#events/message.ts';
import type { ObjectHint } from '#shared/object-import/notification.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { newTrace, traceHeaders } from '#shared/runtime/trace.ts';

export interface AdmissionServer {
  /** Where import-object is reached. */
  readonly url: string;
  /** NOTIFICATION_TOKEN of import-object. */
  readonly token: string;
}

/** Which message it is, for whoever follows it through logs. */
export interface About {
  /** The same for a notification that was sent twice. */
  readonly id: string;
  /** When the queue took it. */
  readonly time: Date;
}

export type Tell = (hint: ObjectHint, about: About) => Promise<QueueAnswer>;

/** Milliseconds; import-object answers within 25 s, whatever it comes to. */
const timeoutMs = 30_000;
/** Characters of an answer that are logged. */
const mostWords = 300;

/** Never throws. */
export const createNotifier =
  ({ url, token }: AdmissionServer): Tell =>
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
        // The token is for this address alone.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      });
      const words = (await response.text()).trim().slice(0, mostWords);
      const retryAfter = response.headers.get('retry-after') ?? undefined;
      return { kind: 'answered', status: response.status, retryAfter, words };
    } catch (error) {
      return { kind: 'unreachable', words: `import-object cannot be reached: ${messageOf(error)}` };
    }
  };

// What is to be done about a message, from what import-object answered: pure.

/** What telling import-object came to. */
export type QueueAnswer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly retryAfter?: string | undefined;
      readonly words: string;
    }
  | { readonly kind: 'unreachable'; readonly words: string };

/**
 * - `ack`: import-object has taken it.
 * - `retry`: the queue delivers it again, and moves it to the dead letters when it has done so `max_retries` times.
 * - `bury`: it would be refused each time, so it goes to the dead letters now.
 */
export type QueueVerdict =
  | { readonly do: 'ack' }
  | { readonly do: 'retry'; readonly afterSeconds: number; readonly reason: string }
  | { readonly do: 'bury'; readonly reason: string };

/** Beyond the first few tries it is the cluster that is away, and not a request that was lost. */
const longestSeconds = 900;

/** What is wrong with the message itself: the same words whoever asks again. */
const refusesMessage = new Set([400, 413, 414, 415, 422]);

/** `attempts`: deliveries so far; `baseSeconds`: pause after the first one, doubled by each that follows. */
export const verdictOf = (answer: QueueAnswer, attempts: number, baseSeconds: number): QueueVerdict => {
  if (answer.kind === 'unreachable') {
    return { do: 'retry', afterSeconds: pause(attempts, baseSeconds), reason: answer.words };
  }
  const { status, words } = answer;
  if (status >= 200 && status < 300) return { do: 'ack' };
  const reason = words === '' ? `HTTP ${status}` : `HTTP ${status}: ${words}`;
  if (refusesMessage.has(status)) return { do: 'bury', reason };
  // A token, an address or a route that is wrong is put right by somebody, as a cluster that is away comes back.
  const asked = Number(answer.retryAfter);
  const afterSeconds = Math.max(pause(attempts, baseSeconds), Number.isFinite(asked) ? asked : 0);
  return { do: 'retry', afterSeconds: Math.min(afterSeconds, longestSeconds), reason };
};

const pause = (attempts: number, baseSeconds: number): number =>
  Math.min(baseSeconds * 2 ** Math.max(0, Math.min(attempts, 30) - 1), longestSeconds);
