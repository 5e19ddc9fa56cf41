// metadata.managedFields: the owners of fields, read from and written to an object.
import { fromEntries, get, isList, isObject, withKey, withoutKey, type Json, type JsonObject } from '../schema/json.ts';
import { isEmptySet, parseFieldsV1, toFieldsV1, type FieldSet, unionOf } from './field-set.ts';

export interface Manager {
  readonly name: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  /** Empty for the main resource. */
  readonly subresource: string;
  readonly fields: FieldSet;
  /** RFC 3339 with seconds, of the last change. */
  readonly time: string | undefined;
}

/** Managers by identity. Immutable. */
export type Managers = ReadonlyMap<string, Manager>;

/** An applier is the same in every version; an updater is a separate one for each version. */
export const managerId = (manager: Omit<Manager, 'fields' | 'time'>): string =>
  JSON.stringify([
    manager.name,
    manager.operation,
    manager.operation === 'Apply' ? '' : manager.apiVersion,
    manager.subresource,
  ]);

const textOf = (entry: JsonObject, key: string): string => {
  const value = entry[key];
  return typeof value === 'string' ? value : '';
};

const parseEntry = (entry: Json): Manager | undefined => {
  if (!isObject(entry)) return undefined;
  const operation = textOf(entry, 'operation');
  const apiVersion = textOf(entry, 'apiVersion');
  if ((operation !== 'Apply' && operation !== 'Update') || apiVersion === '') return undefined;
  if (entry['fieldsType'] !== 'FieldsV1') return undefined;
  const time = textOf(entry, 'time');
  return {
    name: textOf(entry, 'manager'),
    operation,
    apiVersion,
    subresource: textOf(entry, 'subresource'),
    fields: parseFieldsV1(entry['fieldsV1']),
    time: time === '' ? undefined : time,
  };
};

const entriesOf = (object: JsonObject): readonly Json[] | undefined => {
  const metadata = get(object, 'metadata');
  const entries = isObject(metadata) ? get(metadata, 'managedFields') : undefined;
  return isList(entries) ? entries : undefined;
};

/** The managers of an object; undefined when an entry is malformed. */
export const parseManagers = (object: JsonObject): Managers | undefined => {
  const managers = (entriesOf(object) ?? []).map(parseEntry);
  const valid = managers.filter((manager) => manager !== undefined);
  return valid.length === managers.length ? new Map(valid.map((manager) => [managerId(manager), manager])) : undefined;
};

/** Whether a writer requested the removal of all managers: an empty list, or one empty entry. */
export const resetsManagers = (object: JsonObject): boolean => {
  const entries = entriesOf(object);
  if (entries === undefined) return false;
  const [first] = entries;
  return entries.length === 0 || (entries.length === 1 && isObject(first) && Object.keys(first).length === 0);
};

const seconds = (manager: Manager): number =>
  manager.time === undefined ? 0 : Math.floor(Date.parse(manager.time) / 1000);

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const compareManagers = (a: Manager, b: Manager): number =>
  compareText(a.operation, b.operation) ||
  seconds(a) - seconds(b) ||
  compareText(a.name, b.name) ||
  compareText(a.apiVersion, b.apiVersion) ||
  compareText(a.subresource, b.subresource);

const toEntry = (manager: Manager): JsonObject => ({
  ...(manager.name === '' ? {} : { manager: manager.name }),
  operation: manager.operation,
  apiVersion: manager.apiVersion,
  ...(manager.time === undefined ? {} : { time: manager.time }),
  fieldsType: 'FieldsV1',
  fieldsV1: toFieldsV1(manager.fields),
  ...(manager.subresource === '' ? {} : { subresource: manager.subresource }),
});

export const withoutManagers = (object: JsonObject): JsonObject => {
  const metadata = get(object, 'metadata');
  return isObject(metadata) ? withKey(object, 'metadata', withoutKey(metadata, 'managedFields')) : object;
};

/** The object with these managers; those that own nothing are omitted. */
export const withManagers = (object: JsonObject, managers: Managers): JsonObject => {
  const owning = [...managers.values()].filter((manager) => !isEmptySet(manager.fields)).toSorted(compareManagers);
  const bare = withoutManagers(object);
  if (owning.length === 0) return bare;
  const metadata = get(bare, 'metadata');
  return withKey(bare, 'metadata', {
    ...(isObject(metadata) ? fromEntries(Object.entries(metadata)) : {}),
    managedFields: owning.map(toEntry),
  });
};

/** The managers without times, to detect whether anything but a time changed. */
export const timeless = (object: JsonObject): Json =>
  (entriesOf(object) ?? []).map((entry) => (isObject(entry) ? withoutKey(entry, 'time') : entry));

/** Limits the number of updating managers: beyond ten, the oldest of each version are merged into one. */
const maxUpdaters = 10;
const bucketName = 'ancient-changes';

const age = (manager: Manager): number => (manager.time === undefined ? 0 : Date.parse(manager.time));

/** Merges the oldest updaters of one version, two at first, then one more at a time, until ten are left. */
export const capUpdaters = (managers: Managers): Managers => {
  const updaters = [...managers].filter(([, manager]) => manager.operation === 'Update');
  let surplus = updaters.length - maxUpdaters;
  if (surplus <= 0) return managers;
  const capped = new Map(managers);
  const firstOf = new Map<string, string>();
  for (const [id, manager] of updaters.toSorted(([, a], [, b]) => age(a) - age(b) || (a.name < b.name ? -1 : 1))) {
    if (surplus <= 0) break;
    const { apiVersion } = manager;
    const first = firstOf.get(apiVersion);
    if (first === undefined) {
      firstOf.set(apiVersion, id);
      continue;
    }
    const bucket = { name: bucketName, operation: 'Update', apiVersion, subresource: '' } as const;
    const bucketId = managerId(bucket);
    const held = capped.get(bucketId) ?? capped.get(first);
    capped.delete(first);
    capped.delete(id);
    capped.set(bucketId, {
      ...bucket,
      fields: held === undefined ? manager.fields : unionOf(held.fields, manager.fields),
      time: manager.time,
    });
    surplus -= 1;
  }
  return capped;
};
