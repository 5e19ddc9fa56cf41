// The outcome of one invocation. Every function returns one; one table maps it to a response.

/**
 * - `done`: nothing is left to do now, or the object is gone.
 * - `waiting`: another change must happen first; its event, or the tick, reconciles again.
 * - `retry`: a transient failure outside our control; the sender should deliver the event again.
 * - `failed`: a mistake of the user or a permanent failure; it is reported to the user and not retried.
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

/** The most important of several outcomes: `retry` comes first, because only it makes the sender deliver the event again. */
export const worstOf = (outcomes: readonly Outcome[]): Outcome =>
  outcomes.reduce((worst, next) => (severity[next.kind] > severity[worst.kind] ? next : worst), done);

/**
 * The one table from outcomes to HTTP responses of an event function. Knative retries 404, 409, 429 and 5xx and rejects bodies that are not a
 * CloudEvent, so an event function sends only these.
 */
const successStatus = 204;

/** Response to an event that was handled. `failed` is reported on the object; a retry would change nothing. */
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

/** Response to a request that is not a valid event: it is not retried, and the message is kept with the dead letter. */
export const respondUndecodable = (message: string): Response =>
  new Response(message, { status: 400, headers: { 'content-type': 'text/plain; charset=utf-8' } });

/** Response to a bug: the broker retries, then keeps a dead letter. The details are in the log, not in the response. */
export const respondBug = (): Response => new Response(null, { status: 500 });

/** Whole seconds, at least 1: zero would cause a busy loop. */
const retryAfter = (seconds: number): string => String(Math.max(1, Math.ceil(seconds)));
