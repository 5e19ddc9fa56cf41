// DELETE of a collection: every object that the selectors match, as if deleted one by one.
import { type ApiObject, omit } from '../objects/object.ts';
import { apiVersionOf } from '../registry/resource.ts';
import { respond } from '../http/respond.ts';
import { isApiError } from '../status/status.ts';
import type { Call } from './call.ts';
import { deleteObject } from './delete.ts';
import { type DeleteOptions, readDeleteOptions } from './delete-options.ts';
import { openList } from './list.ts';
import { parseListOptions } from './list-options.ts';

const isGone = (error: unknown): boolean => isApiError(error) && error.status.code === 404;

/** Nothing when somebody else was faster. */
const deleteIfThere = async (call: Call, object: ApiObject, options: DeleteOptions): Promise<ApiObject[]> => {
  const { name = '', namespace = '' } = object.metadata;
  try {
    return [(await deleteObject({ ...call, path: { ...call.path, name, namespace } }, options)).object];
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
};

export const handleDeleteCollection = async (call: Call): Promise<Response> => {
  const options = await readDeleteOptions(call);
  const listed = openList(call, parseListOptions(call, false));
  const deleted: ApiObject[] = [];
  for (const objects of listed.batches) {
    for (const object of objects) deleted.push(...(await deleteIfThere(call, object, options)));
  }
  const custom = call.resource.custom !== undefined;
  const items = custom ? deleted : deleted.map((object) => omit(object, 'apiVersion', 'kind'));
  return respond(
    {
      kind: call.resource.listKind,
      apiVersion: apiVersionOf(call.resource),
      metadata: { resourceVersion: String(listed.version) },
      items,
    },
    { encoding: call.form.encoding, warnings: [...call.warnings] },
  );
};
