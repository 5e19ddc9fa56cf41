// Validates the schema of a CustomResourceDefinition at creation and update. Called by the API server.

import { childPath, forbidden, invalid, keyPath, type Cause } from './cause.ts';
import { checkRules } from './cel-rules.ts';
import { checkSchemaRules } from './crd-rules.ts';
import { checkStructure } from './crd-structure.ts';
import { isObject, jsonEqual, type Json, type JsonObject } from './json.ts';
import { hasRules, isEmbedded, valuesOf, type JsonSchema } from './json-schema.ts';
import { pruneValue } from './prune.ts';
import { validateValue } from './validate.ts';

const isMetaField = (name: string): boolean => name === 'metadata' || name === 'apiVersion' || name === 'kind';

const checkDefault = (schema: JsonSchema, value: Json, path: string): Cause[] => {
  const at = childPath(path, 'default');
  if (!jsonEqual(pruneValue(schema, value), value)) return [invalid(at, value, 'must not have unknown fields')];
  const found = validateValue(schema, value, { path: at });
  if (found.length > 0 || !hasRules(schema) || !isObject(value)) return found;
  return checkRules(schema, value, undefined).map((cause) => ({
    ...cause,
    field: cause.field === '<nil>' ? at : childPath(at, cause.field),
  }));
};

/** Every default must be valid according to its own schema, and contain nothing that would be pruned. */
const checkDefaults = (schema: JsonSchema, path: string, isRoot: boolean): Cause[] => {
  const values = valuesOf(schema);
  const own = schema.default === undefined || schema.default === null ? [] : checkDefault(schema, schema.default, path);
  return [
    ...own,
    ...(values === undefined ? [] : checkDefaults(values, childPath(path, 'additionalProperties'), false)),
    ...(schema.items === undefined ? [] : checkDefaults(schema.items, childPath(path, 'items'), false)),
    ...Object.entries(schema.properties ?? {})
      .filter(([name]) => !((isRoot || isEmbedded(schema)) && isMetaField(name)))
      .flatMap(([name, child]) => checkDefaults(child, keyPath(childPath(path, 'properties'), name), false)),
  ];
};

/** Keywords that still apply when only the status is validated, in Kubernetes' order. */
const allowedAtRoot = [
  'Description',
  'Type',
  'Format',
  'Title',
  'Maximum',
  'ExclusiveMaximum',
  'Minimum',
  'ExclusiveMinimum',
  'MaxLength',
  'MinLength',
  'Pattern',
  'MaxItems',
  'MinItems',
  'UniqueItems',
  'MultipleOf',
  'Required',
  'Items',
  'Properties',
  'ExternalDocs',
  'Example',
  'XPreserveUnknownFields',
  'XValidations',
];

const goName = (keyword: string): string => {
  if (keyword.startsWith('x-kubernetes-'))
    return `X${keyword
      .slice('x-kubernetes-'.length)
      .split('-')
      .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
      .join('')}`;
  return keyword.charAt(0).toUpperCase() + keyword.slice(1);
};

const checkRoot = (schema: JsonSchema, path: string, hasStatus: boolean): Cause[] => {
  const found: Cause[] = [];
  if (hasStatus && schema.type !== undefined && schema.type !== 'object')
    found.push(
      invalid(
        childPath(path, 'type'),
        schema.type,
        'only "object" is allowed as the type at the root of the schema if the status subresource is enabled',
      ),
    );
  const stray = Object.entries(schema).find(
    ([keyword, value]) => value !== false && value !== '' && !allowedAtRoot.includes(goName(keyword)),
  );
  if (hasStatus && found.length === 0 && stray !== undefined)
    found.push(
      invalid(
        path,
        schema as JsonSchema & JsonObject,
        `only [${allowedAtRoot.join(' ')}] fields are allowed at the root of the schema if the status subresource is enabled`,
      ),
    );
  if (schema.nullable === true)
    found.push(forbidden(childPath(path, 'nullable'), 'nullable cannot be true at the root'));
  return found;
};

/**
 * All errors in the schema of a CRD version. `path` is its place: Kubernetes reports
 * `spec.validation.openAPIV3Schema` when all versions have the same schema, else
 * `spec.versions[i].schema.openAPIV3Schema`. `hasStatus`: whether the status subresource is enabled.
 */
export const validateCrdSchema = (schema: JsonSchema, path: string, hasStatus: boolean): Cause[] => {
  const structure = checkStructure(schema, path);
  const defaults = structure.length > 0 ? [] : checkDefaults(schema, path, true);
  const isSound = structure.length === 0 && defaults.length === 0;
  return [...checkRoot(schema, path, hasStatus), ...structure, ...defaults, ...checkSchemaRules(schema, path, isSound)];
};
