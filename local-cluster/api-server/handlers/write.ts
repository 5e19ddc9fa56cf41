// The common steps of every write: metadata set by the server, the rules of the kind, validation, and the store.
import { clone, isSame } from '../objects/equal.ts';
import { type ApiObject, copyField, fromJson, setDefault, toJson } from '../objects/object.ts';
import { validateMetadata, validateMetadataUpdate } from '../objects/validate-metadata.ts';
import type { Resource } from '../registry/resource.ts';
import { present } from '../registry/resource.ts';
import type { Cause } from '../schema/cause.ts';
import { validateObject } from '../schema/structural.ts';
import { applyDefaults } from '../schema/structural.ts';
import { badRequest, invalid } from '../status/status.ts';
import type { Entry } from '../store/change.ts';
import { type Call, timestamp } from './call.ts';

/** Custom resources get the defaults of their version even if they were stored before the schema had them. */
export const readObject = (resource: Resource, entry: Entry): ApiObject => {
  const object = present(resource, entry.object());
  const schema = resource.custom === undefined ? undefined : resource.schema();
  return schema === undefined ? object : fromJson(applyDefaults(schema, toJson(object)));
};

/** The namespace and name in the object must be those of the URL; unset ones are set. */
export const alignWithPath = (call: Call, object: ApiObject): void => {
  const { metadata } = object;
  const { namespace, name } = call.path;
  if (call.resource.namespaced) {
    if (metadata.namespace !== undefined && metadata.namespace !== '' && metadata.namespace !== namespace) {
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
    }
    metadata.namespace = namespace;
  } else delete metadata.namespace;
  if (name === '') return;
  if (metadata.name === undefined || metadata.name === '') {
    if (call.info.verb === 'update') throw badRequest('name must be provided');
    metadata.name = name;
  }
  if (metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  }
};

const schemaCauses = (call: Call, object: ApiObject, old: ApiObject | undefined): readonly Cause[] => {
  const schema = call.resource.custom === undefined ? undefined : call.resource.schema();
  if (schema === undefined) return [];
  const isStatus = call.path.subresource === 'status';
  return validateObject(schema, toJson(object), {
    ...(old === undefined ? {} : { oldObject: toJson(old) }),
    ...(isStatus ? { subresource: 'status' as const } : {}),
  });
};

export const refuse = (resource: Resource, object: ApiObject, causes: readonly Cause[]): void => {
  // Events of both groups have one internal kind, which has no group.
  const kind = resource.collection === 'events' ? { group: '', kind: resource.kind } : resource;
  if (causes.length > 0) throw invalid(kind, object.metadata.name ?? '', causes);
};

export const checkNew = (call: Call, object: ApiObject): void => {
  const { strategy, namespaced } = call.resource;
  refuse(call.resource, object, [
    ...validateMetadata(object.metadata, {
      nameRule: strategy.nameRule,
      namespaced,
      isCustom: call.resource.custom !== undefined,
    }),
    ...(strategy.validate?.(object, call.api.strategies()) ?? []),
    ...schemaCauses(call, object, undefined),
  ]);
};

/** Built-in kinds validate metadata in their own rules again, so each of its errors is reported as often. */
const repeated = (resource: Resource, causes: readonly Cause[], times: number): readonly Cause[] =>
  Array.from({ length: resource.custom === undefined ? times : 1 }, () => causes).flat();

export const checkChanged = (call: Call, object: ApiObject, old: ApiObject): void => {
  const { resource } = call;
  const { strategy, namespaced } = resource;
  const isMain = call.path.subresource === '';
  const always = validateMetadata(object.metadata, {
    nameRule: () => [],
    namespaced,
    isCustom: resource.custom !== undefined,
  });
  refuse(resource, object, [
    ...repeated(resource, validateMetadataUpdate(object.metadata, old.metadata), 2),
    ...repeated(resource, always, strategy.metadataChecks ?? 3),
    ...(isMain ? (strategy.validate?.(object, call.api.strategies()) ?? []) : []),
    ...(isMain ? (strategy.validateUpdate?.(object, old) ?? []) : []),
    ...schemaCauses(call, object, old),
  ]);
};

/** Fields that only the server sets. */
export const fillSystemFields = (call: Call, object: ApiObject): void => {
  const { metadata } = object;
  metadata.uid = call.api.uuid();
  metadata.creationTimestamp = timestamp(call.api.clock());
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.resourceVersion;
  delete metadata['selfLink'];
  if (call.resource.strategy.hasGeneration) metadata.generation = 1;
};

const kept = ['deletionTimestamp', 'deletionGracePeriodSeconds', 'generation', 'generateName'] as const;

/** Restores the fields that an update may not change, and increments the generation after a change of the spec. */
export const keepSystemFields = (resource: Resource, object: ApiObject, old: ApiObject): void => {
  for (const field of kept) copyField(old.metadata, object.metadata, field);
  for (const field of ['uid', 'creationTimestamp']) setDefault(object.metadata, field, old.metadata[field]);
  delete object.metadata['selfLink'];
  const { strategy } = resource;
  if (!strategy.hasGeneration) return;
  const bumps = strategy.bumpsGeneration ?? ((a, b) => !isSame(a['spec'], b['spec']));
  if (bumps(object, old)) object.metadata.generation = (old.metadata.generation ?? 0) + 1;
};

/** The status endpoint writes the status, the main endpoint everything else. */
export const isolateSubresource = (call: Call, object: ApiObject, old: ApiObject): void => {
  const { strategy, custom } = call.resource;
  if (call.path.subresource === 'status') {
    keepAllBut(object, old, 'status');
    if (custom !== undefined) {
      const { managedFields } = object.metadata;
      object.metadata = { ...clone(old.metadata), ...(managedFields === undefined ? {} : { managedFields }) };
    }
    strategy.prepareStatus?.(object, old);
  } else if (strategy.hasStatus && call.path.subresource === '') copyField(old, object, 'status');
};

const keepAllBut = (object: ApiObject, old: ApiObject, field: string): void => {
  for (const key of new Set([...Object.keys(object), ...Object.keys(old)])) {
    if (key !== field && key !== 'metadata') copyField(old, object, key);
  }
};
