// What came of one invocation. Every function decides one of these; one table turns it into a reply (respond.ts).

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
