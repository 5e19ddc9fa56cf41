// The one way the product talks to the Kubernetes API: typed verbs over any kind, errors as AppError.
import type { KubeList, KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';

export interface ListOptions {
  /** Left out: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly limit?: number;
  readonly continue?: string;
}

export interface WatchOptions extends Omit<ListOptions, 'limit' | 'continue'> {
  /** Events after this version; left out: the server begins with the state it has now. */
  readonly resourceVersion?: string;
  /** Milliseconds of silence after which the connection is given up and the iteration ends; above the server's bookmark interval. */
  readonly idleMs?: number;
  readonly signal: AbortSignal;
}

export interface WatchEvent<T extends KubeObject> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: T;
}

export interface WriteOptions {
  readonly dryRun?: boolean;
}

export interface PatchOptions extends WriteOptions {
  readonly subresource?: 'status' | 'scale';
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  readonly force?: boolean;
  readonly subresource?: 'status';
}

export interface DeleteOptions extends WriteOptions {
  /** Deletes only the object with this UID; Conflict when another one has taken the name. */
  readonly uid?: string;
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
  readonly gracePeriodSeconds?: number;
}

/** An RFC 6902 operation. */
export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test' | 'move' | 'copy';
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/**
 * Every method throws Unavailable when the API cannot be reached, answers 5xx or 429; Denied on 401 and 403; InvalidInput on 400 and 422
 * with the causes as faults; Conflict on 409; NotFound on 404 unless said otherwise.
 */
export interface KubeClient {
  /** `undefined` when it does not exist. */
  get<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey): Promise<T | undefined>;
  /** One page. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): Promise<KubeList<T>>;
  /** Every object, fetched page by page (`limit` is the page size), so that memory does not grow with the cluster. */
  listAll<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): AsyncIterable<T>;
  /** Conflict when the name is taken. */
  create<T extends KubeObject>(type: ResourceType<T>, object: T, options?: WriteOptions): Promise<T>;
  /** Replaces the whole object; Conflict when `metadata.resourceVersion` is set and no longer current. */
  replace<T extends KubeObject>(type: ResourceType<T>, object: T, options?: PatchOptions): Promise<T>;
  /** JSON merge patch. Put `metadata.resourceVersion` into it to make it conditional. */
  mergePatch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: object,
    options?: PatchOptions,
  ): Promise<T>;
  jsonPatch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: readonly JsonPatchOperation[],
    options?: PatchOptions,
  ): Promise<T>;
  /** Server-side apply. */
  apply<T extends KubeObject>(type: ResourceType<T>, object: T, options: ApplyOptions): Promise<T>;
  /** Gone already is fine. */
  delete(type: ResourceType, key: ObjectKey, options?: DeleteOptions): Promise<void>;
  /**
   * One watch connection: ends when the server closes it or falls silent, throws an AppError when it breaks. Either way go on from the last
   * version observed. A version that is too old (410) throws Conflict: list again.
   */
  watch<T extends KubeObject>(type: ResourceType<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  /** A request to any path (discovery, subresources, reviews). */
  raw<R>(request: RawRequest): Promise<R>;
  /** The API server's base URL as configured. Left out: the configuration has not been read yet. */
  readonly server?: string;
}

export interface RawRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query, beginning with `/`. */
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
}
