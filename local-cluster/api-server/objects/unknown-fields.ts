// Names the fields of a built-in kind that its type does not have, in the order the client gave them, as Go's strict decoder does.
import { type JsonSchema, preservesUnknown, propertyOf, valuesOf } from '../schema/json-schema.ts';
import { isFields } from './object.ts';

const childPath = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);

/** Paths such as `spec.containers[0].imagee`. */
export const findUnknownFields = (schema: JsonSchema, value: unknown, path = ''): string[] => {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined
      ? []
      : value.flatMap((item, index) => findUnknownFields(items, item, `${path}[${index}]`));
  }
  if (!isFields(value) || preservesUnknown(schema)) return [];
  const values = valuesOf(schema);
  return Object.entries(value).flatMap(([key, item]) => {
    const child = propertyOf(schema, key) ?? values;
    if (child !== undefined) return findUnknownFields(child, item, childPath(path, key));
    return schema.properties === undefined ? [] : [childPath(path, key)];
  });
};
