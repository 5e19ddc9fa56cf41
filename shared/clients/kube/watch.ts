// One watch connection as an async iterable of events.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { WatchEvent, WatchOptions } from '#shared/clients/kube/client.ts';
import { collectionPath, queryOf } from '#shared/clients/kube/wire.ts';
import { errorOfStatus } from '#shared/clients/kube/wire.ts';
import type { Transport } from '#shared/clients/kube/wire.ts';
import { AppError, Unavailable, messageOf } from '#shared/runtime/errors.ts';

/**
 * Milliseconds of silence after which a connection counts as dead. Servers send a bookmark about once a minute; a kind that never had an event
 * may get none, and then a new connection every two minutes is cheap.
 */
const defaultIdleMs = 120_000;

type WireEvent<T extends KubeObject> =
  | WatchEvent<T>
  | { readonly type: 'ERROR'; readonly object: { readonly code?: number; readonly message?: string } };

/** Ends without an error when the server closes the stream or is silent, or when the signal fires; throws when the stream fails. */
export async function* watchLines<T extends KubeObject>(
  transport: Transport,
  type: ResourceType<T>,
  options: WatchOptions,
): AsyncIterable<WatchEvent<T>> {
  const path = watchPath(type, options);
  const silence = createSilenceTimer(options.idleMs ?? defaultIdleMs);
  const signal = AbortSignal.any([options.signal, silence.signal]);
  try {
    const response = await transport({ method: 'GET', path, signal });
    for await (const line of readLines(withIdleTimeout(response.body, silence.restart))) {
      if (line === '') continue;
      const event = JSON.parse(line) as WireEvent<T>;
      if (event.type === 'ERROR') throw errorOfStatus(event.object.code ?? 500, event.object, `watch ${path}`);
      yield event;
    }
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof AppError) throw error;
    throw new Unavailable(`Kubernetes API: watch ${path} failed: ${messageOf(error)}`, { cause: error });
  } finally {
    silence.stop();
  }
}

const watchPath = (type: ResourceType, options: WatchOptions): string => {
  const { namespace, resourceVersion, labelSelector, fieldSelector } = options;
  const query = { watch: true, allowWatchBookmarks: true, resourceVersion, labelSelector, fieldSelector };
  return collectionPath(type, namespace) + queryOf(query);
};

/** Forwards chunks. The timer is stopped while the consumer is busy: data that was not read yet is not silence. */
async function* withIdleTimeout(
  chunks: AsyncIterable<Uint8Array>,
  restart: (isRunning: boolean) => void,
): AsyncIterable<Uint8Array> {
  for await (const chunk of chunks) {
    restart(false);
    yield chunk;
    restart(true);
  }
}

const createSilenceTimer = (idleMs: number) => {
  const controller = new AbortController();
  const start = () => setTimeout(() => controller.abort(), idleMs);
  let timer = start();
  return {
    signal: controller.signal,
    restart: (isRunning: boolean) => {
      clearTimeout(timer);
      if (isRunning) timer = start();
    },
    stop: () => clearTimeout(timer),
  };
};

// Lines of a byte stream, as they arrive. Errors of the stream are thrown, which the iterator of readline does not guarantee.

/** Yields each line without its end. Throws errors of the stream, and if it ends in the middle of a line. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  // Parts of the current line: joined once at its end, so that a line of many chunks takes linear time.
  let parts: string[] = [];
  for await (const chunk of chunks) {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    parts.push(first);
    for (const next of others) {
      yield parts.join('').replace(/\r$/, '');
      parts = [next];
    }
  }
  if (parts.join('') !== '') throw new Error('the stream ended in the middle of a line');
}
