// GET of one object or of its status.
import { respond } from '../http/respond.ts';
import { notFound, badRequest } from '../status/status.ts';
import type { ApiObject, Fields } from '../objects/object.ts';
import { type Call, storeKey } from './call.ts';
import { readObject } from './write.ts';
import { type IncludeObject, toPartial, toRow, toTable } from '../tables/table.ts';

/** One object in the requested form: complete, as a table row, or only its metadata. */
const includes: readonly IncludeObject[] = ['None', 'Metadata', 'Object'];

export const includeOf = (call: Pick<Call, 'info'>): IncludeObject => {
  const asked = call.info.query.get('includeObject') ?? '';
  if (asked === '') return 'Metadata';
  const include = includes.find((item) => item === asked);
  if (include === undefined) {
    throw badRequest(
      `Unable to convert to Table as requested: includeObject: Invalid value: "${asked}": must be 'Metadata', 'Object', 'None', or empty`,
    );
  }
  return include;
};

/** Metadata of a list or table around one object. */
export const versionOnly = (object: ApiObject): Fields =>
  object.metadata.resourceVersion === undefined ? {} : { resourceVersion: object.metadata.resourceVersion };

export const shapeResult = (call: Call, object: ApiObject): unknown => {
  if (call.form.shape === 'partial') return toPartial(object);
  if (call.form.shape === 'object') return object;
  const { table } = call.resource;
  return toTable(table.columns, [toRow(table, object, includeOf(call), call.api.clock())], versionOnly(object));
};

/** The current object; throws a 404. */
export const getObject = (call: Call): ApiObject => {
  const entry = call.api.store.get(storeKey(call));
  if (entry === undefined) throw notFound(call.resource, call.path.name);
  return readObject(call.resource, entry);
};

export const handleGet = (call: Call): Response =>
  respond(shapeResult(call, getObject(call)), { encoding: call.form.encoding, warnings: [...call.warnings] });
