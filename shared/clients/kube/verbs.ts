// The typed verbs over any transport to the Kubernetes API. Used by create.ts, and by Workers with their own `fetch`.
import type { KubeList, KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';
import type { KubeClient, LogOptions, PatchOptions, WatchEvent, WatchOptions } from './client.ts';
import { collectionPath, errorOfStatus, listQuery, objectPath, queryOf, type Transport, withType } from './wire.ts';
import { pods } from '#shared/api/foreign/core.ts';
import { AppError, isNotFound, messageOf, Unavailable } from '#shared/runtime/errors.ts';

// One watch connection as an async iterable of events.

/**
 * Milliseconds of silence after which a connection counts as dead. Servers send a bookmark about once a minute; a kind that never had an event
 * may get none, and then a new connection every two minutes is cheap.
 */
const defaultIdleMs = 120_000;

type WireEvent<T extends KubeObject> =
  | WatchEvent<T>
  | { readonly type: 'ERROR'; readonly object: { readonly code?: number; readonly message?: string } };

/** Ends without an error when the server closes the stream or is silent, or when the signal fires; throws when the stream fails. */
async function* watchLines<T extends KubeObject>(
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

/** Yields each line without its end. Throws errors of the stream, and if it ends in the middle of a line, unless such a line counts as well. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  { hasOpenEnd = false }: { readonly hasOpenEnd?: boolean } = {},
): AsyncIterable<string> {
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
  const rest = parts.join('');
  if (rest === '') return;
  if (!hasOpenEnd) throw new Error('the stream ended in the middle of a line');
  yield rest;
}

/** A container may end, or be killed, in the middle of a line. */
async function* logLines(transport: Transport, pod: ObjectKey, options: LogOptions): AsyncIterable<string> {
  const { container, follow, tailLines, signal } = options;
  const path = objectPath(pods, pod, 'log') + queryOf({ container, follow, tailLines });
  try {
    const { body } = await transport({ method: 'GET', path, signal });
    yield* readLines(body, { hasOpenEnd: true });
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof AppError) throw error;
    throw new Unavailable(`Kubernetes API: ${path} failed: ${messageOf(error)}`, { cause: error });
  }
}

/** Objects fetched per request by `listAll`. */
const pageSize = 500;

/** `server` is the base URL that `transport` uses. */
export const createClientOver = (transport: Transport, server: string): KubeClient => ({
  ...readers(transport),
  ...writers(transport),
  watch: (type, options) => watchLines(transport, type, options),
  logs: (pod, options) => logLines(transport, pod, options),
  raw: ({ method, path, body, contentType }) => json(transport, method, path, body, contentType),
  server,
});

const json = async <R>(
  transport: Transport,
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: unknown,
  contentType?: string,
): Promise<R> => {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const response = await transport({ method, path, body: text, contentType });
  return (await response.body.json()) as R;
};

const readers = (transport: Transport): Pick<KubeClient, 'get' | 'list' | 'listAll'> => {
  const list: KubeClient['list'] = async (type, options = {}) => {
    const path = collectionPath(type, options.namespace) + listQuery(options);
    const page = await json<KubeList<never>>(transport, 'GET', path);
    return { metadata: page.metadata, items: page.items.map((item) => withType(type, item)) };
  };
  return {
    get: async (type, key) => {
      // No object has an empty name.
      if (key.name === '') return undefined;
      try {
        return await json(transport, 'GET', objectPath(type, key));
      } catch (error) {
        if (isNotFound(error)) return undefined;
        throw error;
      }
    },
    list,
    listAll: async function* listAll<T extends KubeObject>(
      ...[type, options = {}]: Parameters<typeof list<T>>
    ): AsyncIterable<T> {
      let page = await list(type, { limit: pageSize, ...options });
      yield* page.items;
      while (page.metadata.continue !== undefined && page.metadata.continue !== '') {
        page = await list(type, { limit: pageSize, ...options, continue: page.metadata.continue });
        yield* page.items;
      }
    },
  };
};

const writers = (
  transport: Transport,
): Pick<KubeClient, 'create' | 'replace' | 'mergePatch' | 'jsonPatch' | 'apply' | 'delete'> => ({
  create: (type, object, options = {}) =>
    json(transport, 'POST', collectionPath(type, object.metadata.namespace) + dryRunQuery(options), object),
  replace: (type, object, options = {}) =>
    json(transport, 'PUT', objectPath(type, object.metadata, options.subresource) + dryRunQuery(options), object),
  mergePatch: patches(transport, 'application/merge-patch+json'),
  jsonPatch: patches(transport, 'application/json-patch+json'),
  apply: (type, object, { fieldManager, force, subresource, dryRun }) => {
    const query = queryOf({ fieldManager, force, dryRun: dryRun === true ? 'All' : undefined });
    const path = objectPath(type, object.metadata, subresource) + query;
    return json(transport, 'PATCH', path, object, 'application/apply-patch+yaml');
  },
  delete: async (type, key, options = {}) => {
    const { uid, resourceVersion } = options;
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: options.propagation,
      gracePeriodSeconds: options.gracePeriodSeconds,
      ...((uid ?? resourceVersion) === undefined ? {} : { preconditions: { uid, resourceVersion } }),
      ...(options.dryRun === true ? { dryRun: ['All'] } : {}),
    };
    try {
      await json(transport, 'DELETE', objectPath(type, key), body);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  },
});

const patches =
  (transport: Transport, contentType: string) =>
  <T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, patch: object, options: PatchOptions = {}) =>
    json<T>(transport, 'PATCH', objectPath(type, key, options.subresource) + dryRunQuery(options), patch, contentType);

const dryRunQuery = (options: { readonly dryRun?: boolean }): string =>
  queryOf({ dryRun: options.dryRun === true ? 'All' : undefined });
