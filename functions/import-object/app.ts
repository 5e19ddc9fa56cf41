// Told by object stores that an object was made, replaced or removed: keeps an image for each object under a configured prefix.
import { Hono } from 'hono';
import { type ObjectImportDeps } from '#shared/object-import/drive.ts';
import { handleStoreEvent } from '#shared/object-import/handle.ts';
import { isPlain, takeNotifications } from '#shared/object-import/handle.ts';
import { showsToken } from '#shared/runtime/bearer.ts';
import { anyEventFunction } from '#shared/runtime/event-function.ts';

export interface ImportObjectDeps extends ObjectImportDeps {
  /** What stores must show that send plain notifications; without it none is asked for. */
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
 * Object stores, and Workers that speak for them, have no token of Knative's: where callers are asked for one (`asked`), a plain notification
 * passes by the token that stores and we share, and so does an event that shows it. Where there is no such token, all are asked.
 */
export const withStores = (
  app: AdmissionServer,
  asked: AdmissionServer,
  token: string | undefined,
): AdmissionServer => ({
  fetch: (request) => (token !== undefined && isOfStore(request, token) ? app.fetch(request) : asked.fetch(request)),
});

/** A plain notification without the token is refused here. */
const isOfStore = (request: Request, token: string): boolean => isPlain(request) || showsToken(request.headers, token);
