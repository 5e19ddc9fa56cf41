// The local cluster's object store: an S3-compatible server on a directory. Called by the cluster and by tests.
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { StoreFault, toErrorDocument } from '#local-cluster/object-store/fault.ts';
import { type Answer } from '#local-cluster/object-store/operation.ts';
import { parseRequest, type StoreRequest } from './request.ts';
import { isPublicOperation, operationOf } from '#local-cluster/object-store/route.ts';
import { type Signed, type StoreCredentials, verifySignature } from '#local-cluster/object-store/signature.ts';
import { type Store, createStore } from '#local-cluster/object-store/store.ts';
import { boundConnections } from '#shared/runtime/connections.ts';

export interface ObjectStoreOptions {
  /** Stores the buckets; created if missing. */
  readonly dir: string;
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default, or 0: a free one. */
  readonly port?: number;
  readonly region?: string;
  /** Names below it are buckets. Default: localhost. */
  readonly domain?: string;
  /** Credentials with full access. */
  readonly credentials: readonly StoreCredentials[];
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Called after an object was created, replaced or removed. */
  readonly onChange?: (change: StoredChange) => void;
  /** Called for internal errors. */
  readonly onError?: (error: unknown) => void;
}

export interface ObjectStore {
  /** `http://<host>:<port>`, without a trailing slash; by default `http://<bucket>.localhost:<port>` refers to a bucket. */
  readonly url: string;
  readonly region: string;
  readonly close: () => Promise<void>;
}

/** An object and its change, in the terms of bucket notifications. */
export interface StoredChange {
  readonly bucket: string;
  readonly key: string;
  readonly eventName: 's3:ObjectCreated:Put' | 's3:ObjectRemoved:Delete';
}

/** The store, with notifications of changes. */
const withNotifications = (store: Store, notify: NonNullable<ObjectStoreOptions['onChange']>): Store => ({
  ...store,
  putEntry: async (bucket, entry, condition) => {
    await store.putEntry(bucket, entry, condition);
    notify({ bucket, key: entry.key, eventName: 's3:ObjectCreated:Put' });
  },
  deleteEntry: async (bucket, key) => {
    await store.deleteEntry(bucket, key);
    notify({ bucket, key, eventName: 's3:ObjectRemoved:Delete' });
  },
});

interface Served {
  readonly store: Store;
  readonly options: ObjectStoreOptions;
  readonly region: string;
}

const defaultRegion = 'us-east-1';

/** Resolves when it answers. */
export const startObjectStore = async (options: ObjectStoreOptions): Promise<ObjectStore> => {
  const region = options.region ?? defaultRegion;
  const { host = '127.0.0.1' } = options;
  const store = await createStore(options.dir);
  const served: Served = {
    store: options.onChange ? withNotifications(store, options.onChange) : store,
    options,
    region,
  };
  const server = createServer((message, response) => {
    serve(served, message, response).catch((error: unknown) => {
      options.onError?.(error);
      response.destroy();
    });
  });
  server.requestTimeout = 0;
  boundConnections(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    region,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
};

const authorize = async ({ store }: Served, request: StoreRequest, signed: Signed | undefined): Promise<void> => {
  if (signed !== undefined) return;
  const isOpen = request.bucket !== '' && isPublicOperation(operationOf(request));
  if (isOpen && (await store.bucket(request.bucket)).isPublic) return;
  throw new StoreFault('AccessDenied', 'access denied: sign the request');
};

const answer = async (served: Served, request: StoreRequest): Promise<Answer> => {
  const { store, options, region } = served;
  const { credentials, now = Date.now } = options;
  const signed = verifySignature(request, { region, credentials, now });
  await authorize(served, request, signed);
  return operationOf(request)({ request, store, region, signed });
};

const faultOf = (error: unknown): StoreFault => {
  if (error instanceof StoreFault) return error;
  const isFull = error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
  return isFull
    ? new StoreFault('InsufficientStorage', 'the disk of the store is full: make room there, then try again')
    : new StoreFault('InternalError', 'the store failed; see its log');
};

const refusal = (served: Served, error: unknown, path: string): Answer => {
  const fault = faultOf(error);
  if (fault !== error) served.options.onError?.(error);
  return {
    status: fault.status,
    headers: { 'content-type': 'application/xml', ...fault.headers },
    body: toErrorDocument(fault, path),
  };
};

const serve = async (served: Served, message: IncomingMessage, response: ServerResponse): Promise<void> => {
  const result = await Promise.resolve()
    .then(() => answer(served, parseRequest(message, served.options.domain)))
    .catch((error: unknown) => refusal(served, error, message.url?.replace(/\?.*/, '') ?? '/'));
  // Unread bytes of a body must not be parsed as the next request.
  if (!message.complete) response.shouldKeepAlive = false;
  const { body } = result;
  if (body === undefined || typeof body === 'string') {
    const isBare = body === undefined && (result.status === 204 || result.status === 304);
    const length = isBare ? {} : { 'content-length': String(Buffer.byteLength(body ?? '')) };
    response.writeHead(result.status, { ...length, ...result.headers });
    response.end(message.method === 'HEAD' ? undefined : body);
    if (!message.complete) message.resume();
    return;
  }
  response.writeHead(result.status, result.headers);
  await pipeline(body, response).catch((error: unknown) => {
    // The client disconnected: not an error.
    if (!response.destroyed) throw error;
  });
};
