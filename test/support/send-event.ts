// Posts a CloudEvent to an app like ApiServerSource or the broker, without a socket.
import type { Hono } from 'hono';
import { encodeEvent } from '#events/message.ts';
import { type EventType, eventTypes } from '#events/catalogue.ts';
import type { KubeObject } from '#shared/api/object.ts';

/** An unmodified event. */
export const postEvent = async (
  app: Hono,
  path: string,
  event: Parameters<typeof encodeEvent>[0],
): Promise<Response> => {
  const { headers, body } = encodeEvent(event);
  return app.request(path, { method: 'POST', headers, body: typeof body === 'string' ? body : new Uint8Array(body) });
};

/** Any event of the catalogue with this data. */
export const sendEvent = (app: Hono, type: EventType, data: unknown, path = '/'): Promise<Response> =>
  postEvent(app, path, {
    id: 'test-event',
    source: 'https://10.96.0.1:443',
    type,
    datacontenttype: 'application/json',
    extensions: {},
    data,
  });

/** A change of an object, in Resource mode. */
export const sendChange = (
  app: Hono,
  change: 'add' | 'update' | 'delete',
  object: KubeObject,
  path = '/',
): Promise<Response> => {
  const { apiVersion, kind, metadata } = object;
  const types = { add: eventTypes.objectAdded, update: eventTypes.objectUpdated, delete: eventTypes.objectDeleted };
  const extensions = { apiversion: apiVersion, kind, name: metadata.name, namespace: metadata.namespace ?? '' };
  return postEvent(app, path, {
    id: 'test-event',
    source: 'https://10.96.0.1:443',
    type: types[change],
    datacontenttype: 'application/json',
    extensions,
    data: object,
  });
};
