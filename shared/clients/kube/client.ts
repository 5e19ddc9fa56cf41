// The only client of the Kubernetes API: typed verbs for every kind, errors as AppError.
import type { KubeList, KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';

export interface ListOptions {
  /** Default: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly limit?: number;
  readonly continue?: string;
}

export interface WatchOptions extends Omit<ListOptions, 'limit' | 'continue'> {
  /** Events after this version. Default: the server starts with the current state. */
  readonly resourceVersion?: string;
  /** Milliseconds of silence after which the connection is closed and the iteration ends; must exceed the bookmark interval of the server. */
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
  /** Deletes only the object with this UID; Conflict if another object has the name. */
  readonly uid?: string;
  /** Deletes only this version of the object; Conflict if it was changed since. */
  readonly resourceVersion?: string | undefined;
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
  readonly gracePeriodSeconds?: number;
}

/** An operation of RFC 6902. */
export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test' | 'move' | 'copy';
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

export interface LogOptions {
  readonly container?: string | undefined;
  /** Continues until the container ends. */
  readonly follow?: boolean;
  /** Only the last lines. */
  readonly tailLines?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Every method throws Unavailable if the API cannot be reached or answers 5xx or 429; Denied on 401 and 403; InvalidInput on 400 and 422 with
 * the causes as faults; Conflict on 409; NotFound on 404 unless documented otherwise.
 */
export interface KubeClient {
  /** `undefined` if it does not exist. */
  get<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey): Promise<T | undefined>;
  /** One page. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): Promise<KubeList<T>>;
  /** Every object, fetched page by page (`limit` is the page size), so that memory does not grow with the cluster. */
  listAll<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): AsyncIterable<T>;
  /** Conflict if the name is taken. */
  create<T extends KubeObject>(type: ResourceType<T>, object: T, options?: WriteOptions): Promise<T>;
  /** Replaces the whole object; Conflict if `metadata.resourceVersion` is set and outdated. */
  replace<T extends KubeObject>(type: ResourceType<T>, object: T, options?: PatchOptions): Promise<T>;
  /** JSON merge patch. Set `metadata.resourceVersion` in it to make it conditional. */
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
  /** Succeeds if the object is already gone. */
  delete(type: ResourceType, key: ObjectKey, options?: DeleteOptions): Promise<void>;
  /**
   * One watch connection: ends when the server closes it or is silent, throws an AppError on failure. In both cases resume from the last
   * observed version. A version that is too old (410) throws Conflict: list again.
   */
  watch<T extends KubeObject>(type: ResourceType<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  /** Lines of a container of a pod; ends without an error when the signal fires. InvalidInput while the container has not started. */
  logs(pod: ObjectKey, options: LogOptions): AsyncIterable<string>;
  /** A request to any path (discovery, subresources, reviews). */
  raw<R>(request: RawRequest): Promise<R>;
  /** Base URL of the API server as configured. Default: the configuration was not read yet. */
  readonly server?: string;
}

export interface RawRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query, starting with `/`. */
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
}
