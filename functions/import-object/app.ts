// Receives notifications of object stores about created, replaced or removed objects: maintains an image for each object under a configured
// prefix.
import { Hono } from 'hono';
import { type ObjectImportDeps } from '#shared/object-import/drive.ts';
import { handleStoreEvent } from '#shared/object-import/handle.ts';
import { isPlain, takeNotifications } from '#shared/object-import/handle.ts';
import { showsToken } from '#shared/runtime/bearer.ts';
import { anyEventFunction } from '#shared/runtime/event-function.ts';

export interface ImportObjectDeps extends ObjectImportDeps {
  /** Token of stores that send plain notifications. Default: no token is required. */
  readonly token?: string | undefined;
}

export const createApp = (deps: ImportObjectDeps): Hono => {
  const events = anyEventFunction({
    name: 'import-object',
    log: deps.log,
    handle: (event, { signal }) => handleStoreEvent(deps, event, signal),
  });
  return new Hono().use(takeNotifications(deps, deps.token)).route('/', events);
};

interface AdmissionServer {
  fetch(request: Request): Response | Promise<Response>;
}

/**
 * Object stores, and Workers acting for them, have no token of Knative: if callers need one (`asked`), the token shared with stores is accepted
 * instead for plain notifications and for events. Without a shared token, all callers need one of Knative.
 */
export const withStores = (
  app: AdmissionServer,
  asked: AdmissionServer,
  token: string | undefined,
): AdmissionServer => ({
  fetch: (request) => (token !== undefined && isOfStore(request, token) ? app.fetch(request) : asked.fetch(request)),
});

/** A plain notification without the token is rejected here. */
const isOfStore = (request: Request, token: string): boolean => isPlain(request) || showsToken(request.headers, token);
