// What came of one invocation. Every function decides one of these; one table turns it into a reply.

/**
 * - `done`: nothing is left to do now, or the object is gone.
 * - `waiting`: something else must happen first; the event of that something, or the tick, reconciles again.
 * - `retry`: a transient failure outside our control; whoever delivered the event should deliver it again.
 * - `failed`: the user's mistake or a permanent fault; it is written where the user looks, never redelivered.
 */
export type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'waiting'; readonly for: string }
  | { readonly kind: 'retry'; readonly afterSeconds: number; readonly message: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly message: string };

export const done: Outcome = { kind: 'done' };
export const waiting = (what: string): Outcome => ({ kind: 'waiting', for: what });
export const retry = (afterSeconds: number, message: string): Outcome => ({ kind: 'retry', afterSeconds, message });
export const failed = (reason: string, message: string): Outcome => ({ kind: 'failed', reason, message });

const severity = { done: 0, waiting: 1, failed: 2, retry: 3 } as const;

/** The outcome that matters most of several: a retry outranks all, since only it makes the sender deliver again. */
export const worstOf = (outcomes: readonly Outcome[]): Outcome =>
  outcomes.reduce((worst, next) => (severity[next.kind] > severity[worst.kind] ? next : worst), done);

/**
 * The one table from what happened to the HTTP answer of an event function. Knative retries 404, 409, 429 and 5xx and refuses bodies that
 * are no CloudEvent, so an event function answers nothing but these.
 */
const successStatus = 204;

/** Answer to an event that was handled. `failed` is written where the user looks; delivering it again would change nothing. */
export const respond = (outcome: Outcome): Response => {
  switch (outcome.kind) {
    case 'done':
    case 'waiting':
    case 'failed':
      return new Response(null, { status: successStatus });
    case 'retry':
      return new Response(null, { status: 503, headers: { 'retry-after': retryAfter(outcome.afterSeconds) } });
  }
};

/** Answer to a request that is no event we can read: never delivered again, the words land with the dead letter. */
export const respondUndecodable = (words: string): Response =>
  new Response(words, { status: 400, headers: { 'content-type': 'text/plain; charset=utf-8' } });

/** Answer to our own fault: delivered again by the broker, then a dead letter. The details are in the log, not in the answer. */
export const respondBug = (): Response => new Response(null, { status: 500 });

/** Whole seconds, at least 1: zero would ask for a busy loop. */
const retryAfter = (seconds: number): string => String(Math.max(1, Math.ceil(seconds)));
