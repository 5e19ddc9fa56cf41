// Server-side apply and the tracking of field owners. The API server calls applyConfig for apply patches and trackUpdate
// for every other write.

import { get, isObject, jsonEqual, type JsonObject } from '../schema/json.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { fieldStep } from './field-path.ts';
import { differenceOf, isEmptySet, setOf, unionOf, type FieldSet } from './field-set.ts';
import { allowedByLastApplied, withLastApplied } from './last-applied.ts';
import { capUpdaters } from './managers.ts';
import {
  managerId,
  parseManagers,
  resetsManagers,
  timeless,
  withManagers,
  withoutManagers,
  type Manager,
  type Managers,
} from './managers.ts';
import { badPatch, patched, type PatchOutcome } from './outcome.ts';
import { applyOwned, reportConflicts, takeByUpdate, type Applied, type ApplyInput, type Scope } from './ownership.ts';
import { checkTyped, showFaults } from './typed-check.ts';
import { shapeOf } from './typed-value.ts';
import { zeroObject } from './last-applied.ts';

/** The common input of an apply and an update. */
export interface WriteContext {
  /** Schema of the kind including apiVersion, kind and metadata: builtinSchema, or publishedSchema of a CRD. */
  readonly schema: JsonSchema;
  /** Field manager set by the client, or derived by the server from the user agent. */
  readonly manager: string;
  /** Version of the write, such as `batch/v1`. */
  readonly apiVersion: string;
  /** `status`, `scale`, … or empty for the main resource. */
  readonly subresource: string;
  readonly now: Date;
  /** Paths that this endpoint resets and nobody can own through it; see resetFieldsOf. */
  readonly resetFields: readonly (readonly string[])[];
}

const toSet = (paths: readonly (readonly string[])[]): FieldSet => setOf(paths.map((path) => path.map(fieldStep)));

/** Fields that the server sets are never owned. */
const neverOwned = toSet([
  ['apiVersion'],
  ['kind'],
  ['metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map((name) => ['metadata', name]),
]);

const scopeOf = (context: WriteContext): Scope => ({
  shape: shapeOf(context.schema),
  reset: toSet(context.resetFields),
});

const timeOf = (now: Date): string => `${now.toISOString().slice(0, 19)}Z`;

const identify = (context: WriteContext, operation: Manager['operation']): Omit<Manager, 'fields' | 'time'> => ({
  name: context.manager === '' ? 'unknown' : context.manager,
  operation,
  apiVersion: context.apiVersion,
  subresource: context.subresource,
});

/** The initial managers of a write: those that the writer sent to the main resource, if any. */
const startingManagers = (context: WriteContext, live: JsonObject | undefined, object: JsonObject): Managers => {
  const ofLive = (): Managers => (live === undefined ? undefined : parseManagers(live)) ?? new Map();
  if (context.subresource !== '') return ofLive();
  if (resetsManagers(object)) return new Map();
  const sent = parseManagers(object);
  return sent === undefined || sent.size === 0 ? ofLive() : sent;
};

const addOwned = (managers: Managers, manager: Omit<Manager, 'fields'>, fields: FieldSet): Managers => {
  const id = managerId(manager);
  const previous = managers.get(id)?.fields;
  return new Map(managers).set(id, { ...manager, fields: previous === undefined ? fields : unionOf(fields, previous) });
};

/**
 * The object to store after a create, an update or a patch, with updated managers. `live` is undefined
 * on create. An object that was not tracked since its creation stays untracked until the first apply.
 */
export const trackUpdate = (context: WriteContext, live: JsonObject | undefined, object: JsonObject): JsonObject => {
  const managers = startingManagers(context, live, object);
  const next = withoutManagers(object);
  if (managers.size === 0 && live !== undefined) return next;
  const scope = scopeOf(context);
  const before = live === undefined ? zeroObject(context.schema, object) : withoutManagers(live);
  const taken = takeByUpdate(scope, before, next, managers);
  const fields = differenceOf(taken.changed, neverOwned);
  if (isEmptySet(fields)) return withManagers(next, taken.managers);
  const manager = { ...identify(context, 'Update'), time: timeOf(context.now) };
  return withManagers(next, capUpdaters(addOwned(taken.managers, manager, fields)));
};

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const describe = (context: WriteContext, object: JsonObject): string => {
  const metadata = get(object, 'metadata');
  const { name = '', namespace = '' } = (isObject(metadata) ? metadata : {}) as { name?: string; namespace?: string };
  const version = context.apiVersion.includes('/') ? context.apiVersion : `/${context.apiVersion}`;
  return `${namespace}/${name}; ${version}, Kind=${textOf(get(object, 'kind'))}`;
};

/** The error that prevents an applied object from being compared. */
const refuseConfig = (context: WriteContext, config: JsonObject): PatchOutcome | undefined => {
  const version = textOf(get(config, 'apiVersion'));
  if (version !== context.apiVersion)
    return badPatch(
      `Incorrect version specified in apply patch. Specified patch version: ${version}, expected: ${context.apiVersion}`,
    );
  const metadata = get(config, 'metadata');
  if (isObject(metadata) && (get(metadata, 'managedFields') ?? null) !== null)
    return badPatch('metadata.managedFields must be nil');
  const faults = checkTyped(shapeOf(context.schema), config);
  if (faults.length === 0) return undefined;
  const message = `failed to create typed patch object (${describe(context, config)}): ${showFaults(faults)}`;
  return { kind: 'refused', code: 500, reason: '', message };
};

/** Before the first apply, existing fields get an anonymous owner, so that conflicts with them are detected. */
const managersBefore = (scope: Scope, context: WriteContext, live: JsonObject, known: Managers): Managers => {
  if (known.size > 0) return known;
  const { changed } = takeByUpdate(scope, zeroObject(context.schema, live), live, new Map());
  const fields = differenceOf(changed, neverOwned);
  if (isEmptySet(fields)) return known;
  const manager = { ...identify({ ...context, manager: 'before-first-apply' }, 'Update'), time: timeOf(context.now) };
  return addOwned(known, manager, fields);
};

/** kubectl may take over what it applied on the client side, as recorded in its annotation. */
const applyAsKubectl = (context: WriteContext, input: ApplyInput): Applied => {
  const first = applyOwned(input);
  if (first.kind === 'applied' || context.manager !== 'kubectl') return first;
  const allowed = allowedByLastApplied(input.scope.shape, context.apiVersion, input.live);
  if (allowed === undefined) return first;
  const conflicts = first.conflicts.filter(({ path }) => !isEmptySet(differenceOf(setOf([path]), allowed)));
  return conflicts.length === 0 ? applyOwned({ ...input, force: true }) : { kind: 'conflicting', conflicts };
};

const finish = (input: ApplyInput, applied: Applied & { readonly kind: 'applied' }): Managers => {
  const own = applied.managers.get(input.self);
  const isNoop = jsonEqual(applied.object, input.live);
  const { time: lastTime } = input.managers.get(input.self) ?? { time: undefined };
  if (own === undefined) return applied.managers;
  const fields = differenceOf(own.fields, neverOwned);
  return new Map(applied.managers).set(input.self, { ...own, fields, time: isNoop ? lastTime : input.manager.time });
};

/** A write that changes nothing but times is not stored. */
const keepTimes = (stored: JsonObject | undefined, object: JsonObject): JsonObject => {
  if (stored === undefined || !jsonEqual(withoutManagers(stored), withoutManagers(object))) return object;
  return jsonEqual(timeless(stored), timeless(object)) ? stored : object;
};

/**
 * Applies a configuration. `live` is undefined when the object does not exist yet. The result is the object before
 * defaulting, with its managers; conflicts with other managers are rejected with 409 unless `force` is set.
 */
export const applyConfig = (
  context: WriteContext,
  live: JsonObject | undefined,
  config: JsonObject,
  options: { readonly force: boolean },
): PatchOutcome => {
  const refusal = refuseConfig(context, config);
  if (refusal !== undefined) return refusal;
  const known = live === undefined ? new Map<string, Manager>() : parseManagers(live);
  if (known === undefined)
    return { kind: 'refused', code: 500, reason: '', message: 'failed to decode managed fields of the stored object' };
  const scope = scopeOf(context);
  const before =
    live === undefined
      ? { apiVersion: config['apiVersion'] ?? null, kind: config['kind'] ?? null }
      : withoutManagers(live);
  const manager = { ...identify(context, 'Apply'), time: timeOf(context.now) };
  const input: ApplyInput = {
    scope,
    live: before,
    config: withoutManagers(config),
    managers: managersBefore(scope, context, before, known),
    self: managerId(manager),
    manager,
    force: options.force,
  };
  const applied = applyAsKubectl(context, input);
  if (applied.kind === 'conflicting')
    return { kind: 'refused', code: 409, reason: 'Conflict', ...reportConflicts(applied.conflicts) };
  const object = context.manager === 'kubectl' ? withLastApplied(applied.object, config) : applied.object;
  return patched(keepTimes(live, withManagers(object, finish(input, applied))));
};

/**
 * Paths that an endpoint resets, as in the strategies of Kubernetes. `custom` distinguishes custom resources, whose
 * status endpoint owns no metadata, from built-in ones.
 */
export const resetFieldsOf = (options: {
  readonly custom: boolean;
  readonly hasStatus: boolean;
  readonly subresource: string;
}): readonly (readonly string[])[] => {
  if (options.subresource === '') return options.hasStatus ? [['status']] : [];
  if (options.subresource !== 'status') return [];
  return options.custom ? [['metadata'], ['spec']] : [['spec']];
};
