// Where objects live in the Kubernetes API.
import type { KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';
import type { ListOptions } from '#shared/clients/kube/client.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Path of a collection, in one namespace or (left out) in all. */
export const collectionPath = (type: ResourceType, namespace?: string): string => {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const scope = type.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${scope}/${type.plural}`;
};

/** Throws InvalidInput where the name is empty: that would be the path of the whole collection, to be read, or deleted, as one object. */
export const objectPath = (type: ResourceType, key: ObjectKey, subresource?: string): string => {
  if (key.name === '') throw new InvalidInput(`a ${type.kind} without a name was asked for: give its name`);
  const path = `${collectionPath(type, key.namespace)}/${encodeURIComponent(key.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
};

/** Query string with only the values that are set; empty when none is. */
export const queryOf = (values: Readonly<Record<string, string | number | boolean | undefined>>): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) query.set(name, String(value));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
};

export const listQuery = (options: ListOptions): string =>
  queryOf({
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    limit: options.limit,
    continue: options.continue,
  });

/** Items of a list lack `apiVersion` and `kind` on the wire. */
export const withType = <T extends KubeObject>(type: ResourceType<T>, item: T): T => ({
  ...item,
  apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
  kind: type.kind,
});
