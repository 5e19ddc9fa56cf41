// How a line of the catalog becomes a resource.
import { type Resource, type Strategy, type Subresource, collectionOf, groupVersion } from '../registry/resource.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { defaultShape } from '../tables/columns.ts';
import type { TableShape } from '../tables/table.ts';
import { plainStrategy } from './strategy.ts';

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
  /** apiVersion objects are stored under, and the collection, where another group shares them. */
  readonly stored?: { readonly collection: string; readonly apiVersion: string };
}

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
