// Strategies of built-in kinds start from this one.
import { isSame } from '../objects/equal.ts';
import { dnsSubdomain } from '../objects/names.ts';
import { type ApiObject, type Fields, fieldsAt, valueAt } from '../objects/object.ts';
import type { Strategy } from '../registry/resource.ts';

export const plainStrategy: Strategy = { nameRule: dnsSubdomain, hasStatus: false, hasGeneration: false };

export const specChanged = (object: ApiObject, old: ApiObject): boolean => !isSame(object['spec'], old['spec']);

/** Field selector values: paths of the object, empty where absent. */
export const selectPaths =
  (...paths: readonly string[]): NonNullable<Strategy['selectable']> =>
  (object) =>
    Object.fromEntries(paths.map((path) => [path, toFieldText(valueAt(object, path))]));

const toFieldText = (value: unknown): string => (value === undefined || value === null ? '' : String(value as string));

/** Kinds whose status starts empty and is the controllers' own. */
export const withStatus = (strategy: Partial<Strategy> = {}): Strategy => ({
  ...plainStrategy,
  hasStatus: true,
  prepareCreate: (object) => {
    object['status'] = {};
  },
  ...strategy,
});

export const specOf = (object: ApiObject): Fields => fieldsAt(object, 'spec');
