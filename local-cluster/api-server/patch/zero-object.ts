// What an object of a kind is before anything is set in it. A created object owns what differs from that. Called by
// apply.ts.

import { typeNameOf } from '../schema/builtin.ts';
import { valueStructs } from '../schema/builtin-tables.ts';
import { fromEntries, type Json, type JsonObject } from '../schema/json.ts';
import type { JsonSchema } from '../schema/json-schema.ts';

const alwaysThere = new Set(['metadata', 'spec', 'status']);

const zeros: Readonly<Record<string, Json>> = { string: '', integer: 0, number: 0, boolean: false };

const isStruct = (schema: JsonSchema): boolean => schema.type === 'object' && schema['x-bullion-type'] !== undefined;

/** A required field is written even when it is empty; lists and maps then are null. */
const zeroField = (parent: string, name: string, schema: JsonSchema, isRequired: boolean): Json | undefined => {
  if (isStruct(schema)) {
    const isThere = isRequired || alwaysThere.has(name) || valueStructs.has(`${parent}.${name}`);
    return isThere ? zeroStruct(schema) : undefined;
  }
  return isRequired ? (zeros[schema.type ?? ''] ?? null) : undefined;
};

const zeroStruct = (schema: JsonSchema): JsonObject => {
  const parent = typeNameOf(schema['x-bullion-type'] ?? '');
  const required = new Set(schema.required ?? []);
  return fromEntries(
    Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
      const value = zeroField(parent, name, child, required.has(name));
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
};

/** The empty object of a kind. Custom kinds have nothing in it but their type; built-in ones their empty structures. */
export const zeroObject = (schema: JsonSchema, object: JsonObject): JsonObject => ({
  ...(isStruct(schema) ? zeroStruct(schema) : {}),
  apiVersion: object['apiVersion'] ?? null,
  kind: object['kind'] ?? null,
});
