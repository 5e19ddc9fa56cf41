// Finds embedded resources in a custom resource whose metadata is no object at all: such a body cannot even be decoded.
import { type JsonSchema, childOf, isEmbedded } from '../schema/json-schema.ts';
import { goJson, type Json } from '../schema/json.ts';
import { isFields } from './object.ts';

const jsonType = (value: unknown): string => {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
};

const ownFault = (schema: JsonSchema, metadata: unknown, path: string): string | undefined => {
  if (!isEmbedded(schema) || metadata === undefined || metadata === null || isFields(metadata)) return undefined;
  const shown = goJson(metadata as Json);
  return `${path}.metadata: Invalid value: ${shown}: json: cannot unmarshal ${jsonType(metadata)} into Go value of type v1.ObjectMeta`;
};

/** The first fault, worded as kube-apiserver words it; undefined when there is none. */
export const findEmbeddedFault = (schema: JsonSchema | undefined, value: unknown, path = ''): string | undefined => {
  if (schema === undefined) return undefined;
  if (Array.isArray(value)) {
    const faults = value.map((item, index) => findEmbeddedFault(schema.items, item, `${path}[${index}]`));
    return faults.find((fault) => fault !== undefined);
  }
  if (!isFields(value)) return undefined;
  const own = ownFault(schema, value['metadata'], path);
  if (own !== undefined) return own;
  const faults = Object.entries(value).map(([key, item]) =>
    findEmbeddedFault(childOf(schema, key), item, path === '' ? key : `${path}.${key}`),
  );
  return faults.find((fault) => fault !== undefined);
};
