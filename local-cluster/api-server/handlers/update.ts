// PUT and the last steps of PATCH: a compare-and-set of one object, retried after conflicts.
import { clone, isSame } from '../objects/equal.ts';
import { decodeObject } from '../objects/decode.ts';
import { trackOwnership } from '../objects/ownership.ts';
import { type ApiObject, type Fields, omit } from '../objects/object.ts';
import { toStored } from '../registry/resource.ts';
import { respond } from '../http/respond.ts';
import { invalid as invalidCause } from '../schema/cause.ts';
import { type ApiError, conflict, modifiedMessage, notFound } from '../status/status.ts';
import type { Entry } from '../store/change.ts';
import { readDocument } from './body.ts';
import { auditBlockedOwners } from '../admission/namespace.ts';
import { checkEscalation } from '../admission/escalation.ts';
import { type Call, isDryRun, storeKey } from './call.ts';
import { createObject } from './create.ts';
import { type WriteOptions, managerOf, parseWriteOptions } from './options.ts';
import { shapeResult } from './get.ts';
import { alignWithPath, checkChanged, isolateSubresource, keepSystemFields, readObject, refuse } from './write.ts';

export interface Change {
  /** Builds the new object from the current one (a copy that it may keep), or from nothing when there is none. May throw a Status. */
  readonly build: (live: ApiObject | undefined) => ApiObject;
  /** Whether a missing object is created. */
  readonly creates: boolean;
  /** Whether `build` has already set the managed fields (apply does). */
  readonly tracksItself: boolean;
  readonly options: WriteOptions;
}

export interface Changed {
  readonly object: ApiObject;
  readonly created: boolean;
}

/** Attempts in case of conflicts. Each failed attempt means that another write succeeded. */
const maxTries = 1000;

const conflictOf = (call: Call, why: string): ApiError => conflict(call.resource, call.path.name, why);

/** Throws when the preconditions of the client do not match the current object. */
const checkPreconditions = (call: Call, wanted: ApiObject, live: ApiObject): void => {
  const { uid, resourceVersion } = wanted.metadata;
  if (call.info.verb === 'update' && uid !== undefined && uid !== '' && uid !== live.metadata.uid) {
    throw conflictOf(
      call,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${live.metadata.uid ?? ''}`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== '' && resourceVersion !== '0') {
    if (resourceVersion !== live.metadata.resourceVersion) throw conflictOf(call, modifiedMessage);
  } else if (call.resource.strategy.needsVersion === true && call.info.verb === 'update') {
    refuse(call.resource, wanted, [invalidCause('metadata.resourceVersion', 0, 'must be specified for an update')]);
  }
};

/** The same object except for the timestamps of its managed fields: such a write is not stored. */
const isNoChange = (object: ApiObject, old: ApiObject): boolean => {
  const bare = (given: ApiObject) => ({
    ...given,
    metadata: omit(given.metadata, 'resourceVersion', 'managedFields'),
    managedFields: given.metadata.managedFields?.map((entry) => omit(entry as Fields, 'time')),
  });
  return isSame(bare(object), bare(old));
};

/** Applies the rules of an update to `object` and returns it, ready to be stored. */
const prepare = async (call: Call, object: ApiObject, live: ApiObject, change: Change): Promise<ApiObject> => {
  const { api, resource } = call;
  const { options } = change;
  const by = { manager: managerOf(call, options), now: api.clock(), subresource: call.path.subresource };
  const owned = change.tracksItself ? object : trackOwnership(resource, live, object, by);
  checkEscalation(call, object);
  auditBlockedOwners(call, object);
  const admitted = await api.admission.mutate(call, { operation: 'UPDATE', object: owned, old: live, options });
  alignWithPath(call, admitted);
  isolateSubresource(call, admitted, live);
  if (call.path.subresource === '') resource.strategy.prepareUpdate?.(admitted, live, api.strategies());
  keepSystemFields(resource, admitted, live);
  checkChanged(call, admitted, live);
  await api.admission.validate(call, { operation: 'UPDATE', object: admitted, old: live, options });
  return admitted;
};

/** An object that waits for its finalizers is removed with the last of them. */
const isReleased = ({ metadata }: ApiObject): boolean =>
  metadata.deletionTimestamp !== undefined &&
  (metadata.finalizers ?? []).length === 0 &&
  (metadata.deletionGracePeriodSeconds ?? 0) === 0;

const isNamespaceHeld = (object: ApiObject): boolean =>
  object.kind === 'Namespace' &&
  ((object['spec'] as { finalizers?: string[] } | undefined)?.finalizers ?? []).length > 0;

/** Stores the object if the current one is still `entry`; undefined after a conflict. */
const store = (call: Call, object: ApiObject, entry: Entry): ApiObject | undefined => {
  const { api, resource } = call;
  const key = storeKey(call);
  const isGone = isReleased(object) && !isNamespaceHeld(object);
  const stored = toStored(resource, object);
  if (!isGone) {
    const written = api.store.replace(key, entry.version, stored);
    return written === undefined ? undefined : readObject(resource, written);
  }
  // Watchers get the last stored state of the deleted object; only the caller gets the object as written.
  const removed = api.store.remove(key, entry.version, entry.object());
  return removed === undefined
    ? undefined
    : { ...object, metadata: { ...object.metadata, resourceVersion: String(removed.version) } };
};

const tryOnce = async (call: Call, entry: Entry, change: Change): Promise<ApiObject | undefined> => {
  const live = readObject(call.resource, entry);
  const wanted = change.build(clone(live));
  alignWithPath(call, wanted);
  checkPreconditions(call, wanted, live);
  const isPinned = (wanted.metadata.resourceVersion ?? '') !== '';
  const object = await prepare(call, wanted, live, change);
  object.metadata.resourceVersion = live.metadata.resourceVersion ?? '';
  if (isDryRun(change.options)) return object;
  if (isNoChange(object, live) && !isReleased(object)) return live;
  const written = store(call, object, entry);
  if (written === undefined && isPinned && call.info.verb === 'update') throw conflictOf(call, modifiedMessage);
  return written;
};

/** Changes one object; throws a 404 when it is missing and `creates` is false, a 409 after too many conflicts. */
export const changeObject = async (call: Call, change: Change): Promise<Changed> => {
  for (let attempt = 0; attempt < maxTries; attempt += 1) {
    const entry = call.api.store.get(storeKey(call));
    if (entry === undefined) {
      if (!change.creates) throw notFound(call.resource, call.path.name);
      return { object: await createFrom(call, change), created: true };
    }
    const object = await tryOnce(call, entry, change);
    if (object !== undefined) return { object, created: false };
  }
  throw conflictOf(call, modifiedMessage);
};

const createFrom = async (call: Call, change: Change): Promise<ApiObject> => {
  const object = change.build(undefined);
  alignWithPath(call, object);
  const { uid, resourceVersion } = object.metadata;
  if ((uid ?? '') !== '') {
    throw conflictOf(call, `Precondition failed: UID in precondition: ${uid ?? ''}, UID in object meta: `);
  }
  if ((resourceVersion ?? '') !== '' && resourceVersion !== '0') throw notFound(call.resource, call.path.name);
  const by = { manager: managerOf(call, change.options), now: call.api.clock(), subresource: '' };
  const owned = change.tracksItself ? object : trackOwnership(call.resource, undefined, object, by);
  return createObject(call, owned, change.options);
};

export const respondChanged = (call: Call, { object, created }: Changed): Response =>
  respond(shapeResult(call, object), {
    code: created ? 201 : 200,
    encoding: call.form.encoding,
    warnings: [...call.warnings],
  });

export const handleUpdate = async (call: Call): Promise<Response> => {
  const document = await readDocument(call.request);
  const options = parseWriteOptions(call);
  const wanted = decodeObject(document.value, call.resource, {
    strictErrors: document.strictErrors,
    fieldValidation: options.fieldValidation,
    warn: (text) => call.warnings.add(text),
  });
  const creates = call.resource.strategy.createsOnUpdate === true && call.path.subresource === '';
  const changed = await changeObject(call, { build: () => clone(wanted), creates, tracksItself: false, options });
  return respondChanged(call, changed);
};
