// The typed verbs over any transport to the Kubernetes API. Used by create.ts, and by Workers with their own `fetch`.
import type { KubeList, KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';
import type { KubeClient, PatchOptions } from '#shared/clients/kube/client.ts';
import { collectionPath, listQuery, objectPath, queryOf, withType } from '#shared/clients/kube/wire.ts';
import { watchLines } from '#shared/clients/kube/watch.ts';
import type { Transport } from '#shared/clients/kube/wire.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

/** Objects fetched per request by `listAll`. */
const pageSize = 500;

/** `server` is the base URL that `transport` uses. */
export const createClientOver = (transport: Transport, server: string): KubeClient => ({
  ...readers(transport),
  ...writers(transport),
  watch: (type, options) => watchLines(transport, type, options),
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
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: options.propagation,
      gracePeriodSeconds: options.gracePeriodSeconds,
      ...(options.uid === undefined ? {} : { preconditions: { uid: options.uid } }),
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
