// Handles events and notifications about objects to import.
import { type KnownEvent, eventTypes } from '#events/catalogue.ts';
import type { CloudEvent } from '#events/event.ts';
import { parseEvent } from '#events/receive.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { type ObjectImportDeps, importObject } from '#shared/object-import/drive.ts';
import { readNotification } from '#shared/object-import/notification.ts';
import { hintOf, sweepObjects } from '#shared/object-import/sweep.ts';
import {
  type Outcome,
  done,
  worstOf,
  respond,
  respondBug,
  respondUndecodable,
  retry,
} from '#shared/runtime/outcome.ts';
import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { createMiddleware } from 'hono/factory';
import { showsToken } from '#shared/runtime/bearer.ts';
import { type AppError, InvalidInput, isRetryable } from '#shared/runtime/errors.ts';

/** The body of a notification as the store sent it. Throws InvalidInput if it is invalid. */
export const handleNotification = async (deps: ObjectImportDeps, body: unknown): Promise<Outcome> => {
  const outcomes: Outcome[] = [];
  for (const hint of readNotification(body)) outcomes.push(await importObject(deps, hint));
  return worstOf(outcomes);
};

/** Types of the CloudEvents adapter for S3, and of Ceph, which omits the `.s3`. */
const isStoreEvent = ({ type }: CloudEvent): boolean => type.startsWith('com.amazonaws.');

export const handleStoreEvent = async (
  deps: ObjectImportDeps,
  event: CloudEvent,
  signal: AbortSignal,
): Promise<Outcome> =>
  isStoreEvent(event) ? handleNotification(deps, event.data) : handleKnown(deps, parseEvent(event), signal);

const handleKnown = async (deps: ObjectImportDeps, event: KnownEvent, signal: AbortSignal): Promise<Outcome> => {
  switch (event.type) {
    case eventTypes.ping:
      return sweepObjects(deps, signal);
    case eventTypes.storedObjectChanged:
      return event.data === undefined ? done : importObject(deps, event.data);
    case eventTypes.imageReady:
    case eventTypes.imageFailed:
      return event.data === undefined ? done : settle(deps, event.data.image);
    default:
      return done;
  }
};

/** An image has ended: if it was made from an object, its DataSource may change. */
const settle = async (deps: ObjectImportDeps, { namespace, name, kind, apiVersion }: ImageRef): Promise<Outcome> => {
  const { type } = hyperCloudImageKind;
  if (kind !== type.kind || !apiVersion.startsWith(`${type.group}/`)) return done;
  const image = await deps.kube.get(type, { namespace, name });
  const hint = image && hintOf(image);
  return hint === undefined ? done : importObject(deps, hint);
};

interface ImageRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

// Plain notifications: POST requests that are not CloudEvents. MinIO and Ceph send them with a configured bearer token.

/** Messages of AWS have at most 64 KB. */
const maxBytes = 1024 * 1024;
/** Seconds after which a store retries, unless the fault names another delay. */
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

/** Handles plain notifications, and passes events on. */
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
  // Ceph and MinIO test the endpoint with an empty body.
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
    throw new InvalidInput('the body is not valid JSON', [], { cause: error });
  }
};

const respondTo = (deps: ObjectImportDeps, error: unknown): Response => {
  if (error instanceof InvalidInput) return respondUndecodable(error.message);
  deps.log.error('notification failed', { error });
  if (!isRetryable(error)) return respondBug();
  return respond(retry((error as AppError).retryAfterSeconds ?? retryAfterSeconds, (error as AppError).message));
};
