// GET of one object or of its status.
import { respond } from '../http/respond.ts';
import { notFound } from '../status/status.ts';
import type { ApiObject } from '../objects/object.ts';
import { type Call, storeKey } from './call.ts';
import { shapeResult } from './shape.ts';
import { readObject } from './write.ts';

/** The live object; throws a 404. */
export const getObject = (call: Call): ApiObject => {
  const entry = call.api.store.get(storeKey(call));
  if (entry === undefined) throw notFound(call.resource, call.path.name);
  return readObject(call.resource, entry);
};

export const handleGet = (call: Call): Response =>
  respond(shapeResult(call, getObject(call)), { encoding: call.form.encoding, warnings: [...call.warnings] });
