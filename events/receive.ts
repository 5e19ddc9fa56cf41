// Decodes a request into a typed event. Called by the framework of event functions; code that forwards events unchanged uses message.ts.
import { type KnownEvent, catalogue, isKnownType } from '#events/catalogue.ts';
import { decodeEvent } from '#events/message.ts';
import type { CloudEvent } from '#events/event.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/**
 * The event of a request in binary or structured mode, with its data validated against the catalogue. Throws InvalidInput, whose message can be
 * returned to the client, when the request is not a CloudEvent 1.0, its type is unknown or its data does not match the schema of the type.
 */
export const receiveEvent = async (request: Request): Promise<KnownEvent> => parseEvent(await decodeRequest(request));

/** Any event of a request, whatever its type and data. Throws InvalidInput when the request is not a CloudEvent 1.0. */
export const decodeRequest = async (request: Request): Promise<CloudEvent> =>
  decodeEvent(request.headers, new Uint8Array(await request.arrayBuffer()));

/** Validates type and data of a decoded event. */
export const parseEvent = (event: CloudEvent): KnownEvent => {
  const { type } = event;
  if (!isKnownType(type)) {
    const message = `is ${type}, which is not handled here; check the filter of the Trigger`;
    throw new InvalidInput(`event ${event.id}: type ${message}`, [{ field: 'type', message }]);
  }
  const result = catalogue[type].safeParse(event.data);
  if (result.success) return { ...event, data: result.data } as KnownEvent;
  const faults = result.error.issues.map(({ path, message }) => ({ field: ['data', ...path].join('.'), message }));
  const words = faults.map(({ field, message }) => `${field}: ${message}`).join('; ');
  throw new InvalidInput(`event ${event.id} of type ${type}: ${words}`, faults);
};
