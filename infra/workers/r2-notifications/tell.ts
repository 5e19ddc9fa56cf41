// Tells import-object of one object, as a CloudEvent. Called by relay.ts.
import { buildStoredObjectChanged } from '#events/build.ts';
import { encodeEvent } from '#events/message.ts';
import type { Answer } from '#infra/workers/r2-notifications/verdict.ts';
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

export type Tell = (hint: ObjectHint, about: About) => Promise<Answer>;

/** Milliseconds; import-object answers within 25 s, whatever it comes to. */
const timeoutMs = 30_000;
/** Characters of an answer that are logged. */
const mostWords = 300;

/** Never throws. */
export const createTell =
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
