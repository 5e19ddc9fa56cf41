// What is to be done about a message, from what import-object answered: pure.

/** What telling import-object came to. */
export type Answer =
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
export type Verdict =
  | { readonly do: 'ack' }
  | { readonly do: 'retry'; readonly afterSeconds: number; readonly reason: string }
  | { readonly do: 'bury'; readonly reason: string };

/** Beyond the first few tries it is the cluster that is away, and not a request that was lost. */
const longestSeconds = 900;

/** What is wrong with the message itself: the same words whoever asks again. */
const refusesMessage = new Set([400, 413, 414, 415, 422]);

/** `attempts`: deliveries so far; `baseSeconds`: pause after the first one, doubled by each that follows. */
export const verdictOf = (answer: Answer, attempts: number, baseSeconds: number): Verdict => {
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
