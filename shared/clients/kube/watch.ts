// One watch connection as an async iterable of events.
import { createInterface } from 'node:readline';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { WatchEvent, WatchOptions } from '#shared/clients/kube/client.ts';
import { collectionPath, queryOf } from '#shared/clients/kube/path.ts';
import { errorOfStatus } from '#shared/clients/kube/status.ts';
import type { Transport } from '#shared/clients/kube/transport.ts';
import { Unavailable, messageOf } from '#shared/runtime/errors.ts';

type WireEvent<T extends KubeObject> =
  | WatchEvent<T>
  | { readonly type: 'ERROR'; readonly object: { readonly code?: number; readonly message?: string } };

/** Ends quietly when the server closes the stream or the signal fires; throws when the stream breaks. */
export async function* watchLines<T extends KubeObject>(
  transport: Transport,
  type: ResourceType<T>,
  options: WatchOptions,
): AsyncIterable<WatchEvent<T>> {
  const { namespace, signal, resourceVersion, labelSelector, fieldSelector } = options;
  const query = { watch: true, allowWatchBookmarks: true, resourceVersion, labelSelector, fieldSelector };
  const path = collectionPath(type, namespace) + queryOf(query);
  try {
    const response = await transport({ method: 'GET', path, signal });
    for await (const line of createInterface({ input: response.body, crlfDelay: Infinity })) {
      if (line === '') continue;
      const event = JSON.parse(line) as WireEvent<T>;
      if (event.type === 'ERROR') throw errorOfStatus(event.object.code ?? 500, event.object, `watch ${path}`);
      yield event;
    }
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof Error && 'retryable' in error) throw error;
    throw new Unavailable(`Kubernetes API: watch ${path} broke: ${messageOf(error)}`, { cause: error });
  }
}
