// Turns a line of the catalog into a resource.
import { type Resource, type Strategy, type Subresource, collectionOf, groupVersion } from '../registry/resource.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { defaultShape } from '../tables/columns.ts';
import type { TableShape } from '../tables/table.ts';
import { isSame } from '../objects/equal.ts';
import { dnsSubdomain } from '../objects/names.ts';
import { type ApiObject, type Fields, fieldsAt, valueAt } from '../objects/object.ts';

export const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
export const changing = ['get', 'patch', 'update'];

interface Line {
  readonly short?: readonly string[];
  readonly categories?: readonly string[];
  readonly cluster?: true;
  readonly verbs?: readonly string[];
  readonly subresources?: readonly Subresource[];
  readonly strategy?: Strategy;
  readonly table?: TableShape;
  /** apiVersion in which objects are stored, and the collection, if another group shares them. */
  readonly stored?: { readonly collection: string; readonly apiVersion: string };
}

/** Strategies of built-in kinds start from this one. */
export const plainStrategy: Strategy = { nameRule: dnsSubdomain, hasStatus: false, hasGeneration: false };

export const specChanged = (object: ApiObject, old: ApiObject): boolean => !isSame(object['spec'], old['spec']);

/** Values for field selectors: paths of the object, empty if absent. */
export const selectPaths =
  (...paths: readonly string[]): NonNullable<Strategy['selectable']> =>
  (object) =>
    Object.fromEntries(paths.map((path) => [path, toFieldText(valueAt(object, path))]));

const toFieldText = (value: unknown): string => (value === undefined || value === null ? '' : String(value as string));

/** Kinds whose status is initially empty and written only by controllers. */
export const withStatus = (strategy: Partial<Strategy> = {}): Strategy => ({
  ...plainStrategy,
  hasStatus: true,
  prepareCreate: (object) => {
    object['status'] = {};
  },
  ...strategy,
});

export const specOf = (object: ApiObject): Fields => fieldsAt(object, 'spec');

const defaults = {
  short: [],
  categories: [],
  verbs: allVerbs,
  subresources: [],
  strategy: plainStrategy,
  table: defaultShape,
} as const satisfies Line;

/** `apiVersion/Kind plural`, e.g. `batch/v1/Job jobs`. */
export const define = (text: string, given: Line = {}): Resource => {
  const [path = '', plural = ''] = text.split(' ');
  const [kind = '', version = '', group = ''] = path.split('/').toReversed();
  const line = { ...defaults, ...given };
  const status: Subresource[] = line.strategy.hasStatus ? [{ name: 'status', kind, verbs: changing }] : [];
  const stored = line.stored ?? { collection: collectionOf(group, plural), apiVersion: groupVersion(group, version) };
  return {
    group,
    version,
    plural,
    singular: kind.toLowerCase(),
    kind,
    listKind: `${kind}List`,
    namespaced: line.cluster !== true,
    shortNames: line.short,
    categories: line.categories,
    verbs: line.verbs,
    subresources: [...line.subresources, ...status].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    collection: stored.collection,
    storageApiVersion: stored.apiVersion,
    custom: undefined,
    schema: () => builtinSchema(group, version, kind),
    strategy: line.strategy,
    table: line.table,
  };
};
