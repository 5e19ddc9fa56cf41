// Request → typed event. Called by the event function chassis; code that forwards events unchanged uses message.ts.
import { type KnownEvent, catalogue, isKnownType } from '#events/catalogue.ts';
import { decodeEvent } from '#events/message.ts';
import type { CloudEvent } from '#events/event.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/**
 * The event of a request in binary or structured mode, its data checked against the catalogue. Throws InvalidInput, whose message is fit for
 * the answer, when the request is no CloudEvent 1.0, its type is unknown or its data does not have the type's shape.
 */
export const receiveEvent = async (request: Request): Promise<KnownEvent> => parseEvent(await decodeRequest(request));

/** Any event of a request, whatever its type and data. Throws InvalidInput when the request is no CloudEvent 1.0. */
export const decodeRequest = async (request: Request): Promise<CloudEvent> =>
  decodeEvent(request.headers, new Uint8Array(await request.arrayBuffer()));

/** Checks type and data of an event that was decoded already. */
export const parseEvent = (event: CloudEvent): KnownEvent => {
  const { type } = event;
  if (!isKnownType(type)) {
    const message = `is ${type}, which nothing here handles; check the filter of the Trigger`;
    throw new InvalidInput(`event ${event.id}: type ${message}`, [{ field: 'type', message }]);
  }
  const result = catalogue[type].safeParse(event.data);
  if (result.success) return { ...event, data: result.data } as KnownEvent;
  const faults = result.error.issues.map(({ path, message }) => ({ field: ['data', ...path].join('.'), message }));
  const words = faults.map(({ field, message }) => `${field}: ${message}`).join('; ');
  throw new InvalidInput(`event ${event.id} of type ${type}: ${words}`, faults);
};
