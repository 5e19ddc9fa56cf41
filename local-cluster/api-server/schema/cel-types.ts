// Declares the type of `self` from a schema, so that a rule that reads a field which does not exist, or compares a
// number with a text, is refused when the CRD is created. Called by cel.ts.

import type { Environment } from '@marcbachmann/cel-js';
import { asResource, escapeName } from './cel-values.ts';
import { valuesOf, type JsonSchema } from './json-schema.ts';

const timestamp = 'google.protobuf.Timestamp';

const textTypes: Readonly<Record<string, string>> = {
  'date-time': timestamp,
  datetime: timestamp,
  date: timestamp,
  duration: 'google.protobuf.Duration',
  byte: 'bytes',
};

const scalarTypes: Readonly<Record<string, string>> = { integer: 'int', number: 'double', boolean: 'bool' };

/** Hands out names for the object types of one rule. */
interface Names {
  next: number;
}

const declareObject = (environment: Environment, schema: JsonSchema, names: Names): string => {
  const fields = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const escaped = escapeName(name);
    const type = declare(environment, asResource(property), names);
    return escaped === undefined || type === undefined ? [] : [[escaped, type] as const];
  });
  const typeName = `Object${names.next++}`;
  environment.registerType(typeName, { fields: Object.fromEntries(fields) });
  environment.registerOperator(`${typeName} == ${typeName}`, (a: unknown, b: unknown) => a === b);
  return typeName;
};

/** The name of the type of a schema; undefined for what rules cannot see, such as fields without a type. */
const declare = (environment: Environment, schema: JsonSchema, names: Names): string | undefined => {
  if (schema['x-kubernetes-int-or-string'] === true) return 'dyn';
  if (schema.type === 'string') return textTypes[schema.format ?? ''] ?? 'string';
  if (schema.type === 'array') {
    const item = schema.items === undefined ? undefined : declare(environment, asResource(schema.items), names);
    return item === undefined ? undefined : `list<${item}>`;
  }
  if (schema.type !== 'object') return scalarTypes[schema.type ?? ''];
  const values = valuesOf(schema);
  if (values === undefined) return declareObject(environment, schema, names);
  const value = declare(environment, asResource(values), names);
  return value === undefined ? undefined : `map<string, ${value}>`;
};

/** Declares `self` and `oldSelf` in the environment; false when the schema has no type rules can work on. */
export const declareSelf = (environment: Environment, schema: JsonSchema, optionalOldSelf: boolean): boolean => {
  const type = declare(environment, schema, { next: 0 });
  if (type === undefined) return false;
  environment.registerVariable('self', type);
  environment.registerVariable('oldSelf', optionalOldSelf ? `optional<${type}>` : type);
  return true;
};
