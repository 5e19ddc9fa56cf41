// A response body that fails when the server goes silent, and only then: a slow reader never looks like a slow server.
import type { Readable } from 'node:stream';
import { HttpFailure, toHttpFailure } from '#shared/clients/http/errors.ts';

export interface IdleGuard {
  /** Milliseconds a read may wait for its next bytes. */
  readonly idleMs: number;
  readonly host: string;
  readonly signal: AbortSignal | undefined;
}

/** Chunks of `body`. The clock runs only while a chunk is asked for. Throws HttpFailure or the signal's reason. */
export async function* idleGuarded(body: Readable, guard: IdleGuard): AsyncGenerator<Buffer, void, undefined> {
  const stall = () =>
    body.destroy(new HttpFailure('Stalled', `${guard.host} sent nothing for ${guard.idleMs / 1000} seconds`));
  const chunks = body.iterator({ destroyOnReturn: true }) as AsyncIterableIterator<Buffer>;
  try {
    for (;;) {
      const timer = setTimeout(stall, guard.idleMs);
      const next = await chunks.next().finally(() => clearTimeout(timer));
      if (next.done === true) return;
      yield next.value;
    }
  } catch (error) {
    guard.signal?.throwIfAborted();
    throw toHttpFailure(error, guard.host);
  } finally {
    body.destroy();
  }
}
