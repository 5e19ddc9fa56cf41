// Plain notifications: POSTs that are no CloudEvents. MinIO and Ceph send them with a bearer token of their configuration.
import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { createMiddleware } from 'hono/factory';
import type { ObjectImportDeps } from '#shared/object-import/drive.ts';
import { handleNotification } from '#shared/object-import/handle.ts';
import { showsToken } from '#shared/runtime/bearer.ts';
import { type AppError, InvalidInput, isRetryable } from '#shared/runtime/errors.ts';
import { respond, respondBug, respondUndecodable } from '#shared/runtime/respond.ts';
import { retry } from '#shared/runtime/outcome.ts';

/** Messages of AWS have 64 KB at most. */
const maxBytes = 1024 * 1024;
/** Seconds a store is asked to wait after a fault that names no time of its own. */
const retryAfterSeconds = 5;

export const isPlain = (request: Request): boolean => {
  const { headers } = request;
  const isEvent =
    headers.has('ce-specversion') || (headers.get('content-type') ?? '').startsWith('application/cloudevents');
  return request.method === 'POST' && !isEvent;
};

const limit = bodyLimit({
  maxSize: maxBytes,
  onError: () => respondUndecodable(`a notification has ${maxBytes} bytes at most`),
});

/** Answers plain notifications, and lets events pass. */
export const takeNotifications = (deps: ObjectImportDeps, token: string | undefined): MiddlewareHandler =>
  createMiddleware(async (c, next) => {
    if (!isPlain(c.req.raw)) return next();
    if (token !== undefined && !showsToken(c.req.raw.headers, token)) {
      deps.log.warn('notification refused', { reason: 'wrong token' });
      return c.text('the Authorization header is not "Bearer " and the token of NOTIFICATION_TOKEN', 401);
    }
    return limit(c, async () => {
      c.res = await answer(deps, c.req.raw);
    });
  });

const answer = async (deps: ObjectImportDeps, request: Request): Promise<Response> => {
  const text = await request.text();
  // Ceph and MinIO ask with an empty body whether anybody listens.
  if (text.trim() === '') return new Response(null, { status: 204 });
  try {
    return respond(await handleNotification(deps, parse(text)));
  } catch (error) {
    return respondTo(deps, error);
  }
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidInput('the body is no JSON', [], { cause: error });
  }
};

const respondTo = (deps: ObjectImportDeps, error: unknown): Response => {
  if (error instanceof InvalidInput) return respondUndecodable(error.message);
  deps.log.error('notification failed', { error });
  if (!isRetryable(error)) return respondBug();
  return respond(retry((error as AppError).retryAfterSeconds ?? retryAfterSeconds, (error as AppError).message));
};
