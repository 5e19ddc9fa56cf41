// The one table from what happened to the HTTP answer of an event function. Knative retries 404, 409, 429 and 5xx and refuses bodies that are
// no CloudEvent, so an event function answers nothing but these. Called by event-function.ts.
import type { Outcome } from '#shared/runtime/outcome.ts';

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
