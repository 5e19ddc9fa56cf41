// Resources inside resources (x-kubernetes-embedded-resource) must say what they are. Called by structural.ts.

import { childPath, indexPath, invalid, keyPath, required, type Cause } from './cause.ts';
import { get, isList, isObject, type Json, type JsonObject } from './json.ts';
import { isEmbedded, propertyOf, valuesOf, type JsonSchema } from './json-schema.ts';

const label = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

const labelRule =
  "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const checkApiVersion = (value: Json, path: string): Cause[] => {
  if (typeof value !== 'string') return [invalid(path, value, 'must be a string')];
  if (value === '') return [invalid(path, value, 'must not be empty')];
  return value.split('/').length > 2 ? [invalid(path, value, `unexpected GroupVersion string: ${value}`)] : [];
};

const checkKind = (value: Json, path: string): Cause[] => {
  if (typeof value !== 'string') return [invalid(path, value, 'must be a string')];
  if (value === '') return [invalid(path, value, 'must not be empty')];
  const name = value.toLowerCase();
  return name.length <= 63 && label.test(name) ? [] : [invalid(path, value, labelRule)];
};

const checkResource = (resource: JsonObject, path: string): Cause[] => {
  const [apiVersion, kind] = [get(resource, 'apiVersion'), get(resource, 'kind')];
  const [versionPath, kindPath] = [childPath(path, 'apiVersion'), childPath(path, 'kind')];
  return [
    ...(apiVersion === undefined ? [required(versionPath)] : checkApiVersion(apiVersion, versionPath)),
    ...(kind === undefined ? [required(kindPath)] : checkKind(kind, kindPath)),
  ];
};

const checkField = (schema: JsonSchema, [key, value]: readonly [string, Json], path: string): Cause[] => {
  const property = propertyOf(schema, key);
  if (property !== undefined) return checkEmbedded(property, value, childPath(path, key));
  const values = valuesOf(schema);
  return values === undefined ? [] : checkEmbedded(values, value, keyPath(path, key));
};

/** What is wrong with the type of each embedded resource of a value. */
export const checkEmbedded = (schema: JsonSchema, value: Json, path = ''): Cause[] => {
  const { items } = schema;
  if (isList(value))
    return items === undefined
      ? []
      : value.flatMap((item, index) => checkEmbedded(items, item, indexPath(path, index)));
  if (!isObject(value)) return [];
  return [
    ...(isEmbedded(schema) ? checkResource(value, path) : []),
    ...Object.entries(value).flatMap((entry) => checkField(schema, entry, path)),
  ];
};
