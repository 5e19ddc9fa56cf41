// DELETE of one object: at once, or with a deletion timestamp for finalizers, a grace period or the garbage collector.
import { type ApiObject, fieldsAt, omit } from '../objects/object.ts';
import { toStored, apiVersionOf } from '../registry/resource.ts';
import { respond } from '../http/respond.ts';
import { type ResourceName, type StatusBody, conflict, notFound, isApiError } from '../status/status.ts';
import type { Entry } from '../store/change.ts';
import { checkProtected } from '../admission/namespace.ts';
import { type Call, isDryRun, storeKey, timestamp } from './call.ts';
import { type DeleteOptions, type Propagation, readDeleteOptions } from './delete-options.ts';
import { shapeResult } from './get.ts';
import { readObject } from './write.ts';
import { openList } from './list.ts';
import { parseListOptions } from './list-options.ts';

const foreground = 'foregroundDeletion';
const orphan = 'orphan';

/** Finalizers that tell the garbage collector what to do with dependents. */
const collectorFinalizers = (object: ApiObject, propagation: Propagation | undefined): string[] => {
  const present = object.metadata.finalizers ?? [];
  if (propagation === undefined) return [...present];
  const others = present.filter((finalizer) => finalizer !== foreground && finalizer !== orphan);
  if (propagation === 'Foreground') return [...others, foreground];
  return propagation === 'Orphan' ? [...others, orphan] : others;
};

const checkPreconditions = (resource: ResourceName, object: ApiObject, options: DeleteOptions): void => {
  const { uid, resourceVersion, name = '' } = object.metadata;
  if (options.uid !== undefined && options.uid !== uid) {
    throw conflict(
      resource,
      name,
      `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${uid ?? ''}`,
    );
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    throw conflict(
      resource,
      name,
      `Precondition failed: ResourceVersion in precondition: ${options.resourceVersion}, ResourceVersion in object meta: ${resourceVersion ?? ''}`,
    );
  }
};

export interface Deletion {
  readonly object: ApiObject;
  /** Whether it was removed from the store, and does not wait. */
  readonly gone: boolean;
}

/** Sets the deletion timestamp; a second deletion may only shorten the grace period. */
const mark = (object: ApiObject, grace: number, now: Date): void => {
  const { metadata } = object;
  if (metadata.deletionTimestamp !== undefined) {
    const left = metadata.deletionGracePeriodSeconds ?? 0;
    if (grace >= left) return;
    const asked = Date.parse(metadata.deletionTimestamp) - left * 1000;
    metadata.deletionTimestamp = timestamp(new Date(asked + grace * 1000));
    metadata.deletionGracePeriodSeconds = grace;
    return;
  }
  metadata.deletionTimestamp = timestamp(new Date(now.getTime() + grace * 1000));
  if (object.kind !== 'Namespace') metadata.deletionGracePeriodSeconds = grace;
  if (metadata.generation !== undefined && metadata.generation > 0) metadata.generation += 1;
};

const terminateNamespace = (object: ApiObject): void => {
  if (object.kind === 'Namespace') object['status'] = { ...fieldsAt(object, 'status'), phase: 'Terminating' };
};

const cleanup = 'customresourcecleanup.apiextensions.k8s.io';

/** A definition waits until its objects are deleted; a namespace until it is empty. */
const ownFinalizers = (object: ApiObject, finalizers: readonly string[]): string[] =>
  object.kind === 'CustomResourceDefinition' &&
  !finalizers.includes(cleanup) &&
  object.metadata.deletionTimestamp === undefined
    ? [...finalizers, cleanup]
    : [...finalizers];

const isHeld = (object: ApiObject): boolean =>
  (object.metadata.finalizers ?? []).length > 0 ||
  (object.kind === 'Namespace' && ((fieldsAt(object, 'spec')['finalizers'] ?? []) as string[]).length > 0);

/** One attempt; undefined when the object changed meanwhile. */
const tryDelete = (call: Call, entry: Entry, options: DeleteOptions): Deletion | undefined => {
  const { api, resource } = call;
  const object = readObject(resource, entry);
  const before = JSON.stringify(object);
  const grace = resource.strategy.graceSeconds?.(object, options.gracePeriodSeconds) ?? 0;
  object.metadata.finalizers = ownFinalizers(object, collectorFinalizers(object, options.propagation));
  if (object.metadata.finalizers.length === 0) delete object.metadata.finalizers;
  const key = storeKey(call);
  if (!isHeld(object) && grace === 0) {
    if (isDryRun(options)) return { object, gone: true };
    const removed = api.store.remove(key, entry.version, toStored(resource, object));
    return removed === undefined ? undefined : { object: readObject(resource, removed), gone: true };
  }
  mark(object, grace, api.clock());
  terminateNamespace(object);
  if (isDryRun(options) || JSON.stringify(object) === before) return { object, gone: false };
  const replaced = api.store.replace(key, entry.version, toStored(resource, object));
  return replaced === undefined ? undefined : { object: readObject(resource, replaced), gone: false };
};

/** Deletes one object; throws a 404 when it does not exist. */
export const deleteObject = async (call: Call, options: DeleteOptions): Promise<Deletion> => {
  for (;;) {
    const entry = call.api.store.get(storeKey(call));
    if (entry === undefined) throw notFound(call.resource, call.path.name);
    const old = readObject(call.resource, entry);
    checkPreconditions(call.resource, old, options);
    checkProtected(call);
    const attributes = { operation: 'DELETE' as const, object: undefined, old, options };
    await call.api.admission.mutateDelete(call, attributes);
    await call.api.admission.validate(call, attributes);
    const deletion = tryDelete(call, entry, options);
    if (deletion !== undefined) return deletion;
  }
};

const success = ({ resource, path }: Call, object: ApiObject): StatusBody => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  details: {
    name: path.name,
    ...(resource.group === '' ? {} : { group: resource.group }),
    kind: resource.plural,
    ...(object.metadata.uid === undefined ? {} : { uid: object.metadata.uid }),
  },
});

export const handleDelete = async (call: Call): Promise<Response> => {
  const { object, gone } = await deleteObject(call, await readDeleteOptions(call));
  const shown =
    gone && call.resource.strategy.returnsDeleted !== true ? success(call, object) : shapeResult(call, object);
  return respond(shown, { encoding: call.form.encoding, warnings: [...call.warnings] });
};

/** DELETE of a collection: every object that matches the selectors, as if deleted separately. */
const isGone = (error: unknown): boolean => isApiError(error) && error.status.code === 404;

/** Nothing when the object was already deleted. */
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
