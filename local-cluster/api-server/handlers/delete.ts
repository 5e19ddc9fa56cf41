// DELETE of one object: at once, or with a deletion timestamp for finalizers, a grace period or the garbage collector.
import { checkProtected } from '#local-cluster/api-server/admission/namespace.ts';
import { readBody } from './body.ts';
import { type Call, isDryRun, storeKey, timestamp } from './call.ts';
import { shapeResult } from './get.ts';
import { parseListOptions } from './list-options.ts';
import { openList } from './list.ts';
import { readObject } from './write.ts';
import { respond } from '#local-cluster/api-server/http/respond.ts';
import { type ApiObject, type Fields, fieldsAt, isFields, omit } from '#local-cluster/api-server/objects/object.ts';
import { apiVersionOf, toStored } from '#local-cluster/api-server/registry/resource.ts';
import { type Cause, forbidden, notSupported } from '#local-cluster/api-server/schema/cause.ts';
import {
  badRequest,
  conflict,
  invalid,
  isApiError,
  notFound,
  type ResourceName,
  type StatusBody,
} from '#local-cluster/api-server/status/status.ts';
import type { Entry } from '#local-cluster/api-server/store/change.ts';

// DeleteOptions, from the body or the query of a DELETE.

type Propagation = 'Background' | 'Foreground' | 'Orphan';

interface DeleteOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly propagation: Propagation | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly dryRun: readonly string[];
  /** As sent to a webhook. */
  readonly raw: Fields;
}

const policies: readonly Propagation[] = ['Foreground', 'Background', 'Orphan'];

const fromQuery = (query: URLSearchParams): Fields => ({
  ...(query.has('gracePeriodSeconds') ? { gracePeriodSeconds: Number(query.get('gracePeriodSeconds')) } : {}),
  ...(query.has('propagationPolicy') ? { propagationPolicy: query.get('propagationPolicy') } : {}),
  ...(query.has('orphanDependents') ? { orphanDependents: query.get('orphanDependents') === 'true' } : {}),
  ...(query.has('dryRun') ? { dryRun: query.getAll('dryRun') } : {}),
});

const propagationOf = (raw: Fields): Propagation | undefined => {
  if (raw['orphanDependents'] !== undefined && raw['orphanDependents'] !== null) {
    return raw['orphanDependents'] === true ? 'Orphan' : 'Background';
  }
  return policies.find((policy) => policy === raw['propagationPolicy']);
};

const causesOf = (raw: Fields): Cause[] => {
  const policy = raw['propagationPolicy'];
  const causes: Cause[] = [];
  if (
    policy !== undefined &&
    policy !== null &&
    raw['orphanDependents'] !== undefined &&
    raw['orphanDependents'] !== null
  ) {
    causes.push(forbidden('propagationPolicy', 'orphanDependents and deletionPropagation cannot be both set'));
  }
  if (typeof policy === 'string' && !policies.some((known) => known === policy)) {
    causes.push(notSupported('propagationPolicy', policy, [...policies, 'nil']));
  }
  const dryRun = Array.isArray(raw['dryRun']) ? raw['dryRun'].map(String) : [];
  if (dryRun.some((value) => value !== 'All')) causes.push(notSupported('dryRun', dryRun as never, ['All']));
  return causes;
};

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** Parses and validates the options; throws a 400 or 422. */
const readDeleteOptions = async (call: Call): Promise<DeleteOptions> => {
  const body = await readBody(call.request);
  if (body !== undefined && !isFields(body)) throw badRequest('the body must be an object of kind DeleteOptions');
  if (body?.['kind'] !== undefined && body['kind'] !== 'DeleteOptions' && body['kind'] !== '') {
    throw badRequest(`decoded object cannot be converted to DeleteOptions`);
  }
  const raw: Fields = body ?? fromQuery(call.info.query);
  const causes = causesOf(raw);
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', causes);
  const preconditions = isFields(raw['preconditions']) ? raw['preconditions'] : {};
  return {
    gracePeriodSeconds: typeof raw['gracePeriodSeconds'] === 'number' ? raw['gracePeriodSeconds'] : undefined,
    propagation: propagationOf(raw),
    uid: text(preconditions['uid']),
    resourceVersion: text(preconditions['resourceVersion']),
    dryRun: Array.isArray(raw['dryRun']) ? raw['dryRun'].map(String) : [],
    raw,
  };
};

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

interface Deletion {
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
