// One served resource: its names, its verbs, and the rules of its objects.
import type { JsonSchema } from '../schema/json-schema.ts';
import type { Cause } from '../schema/cause.ts';
import type { ApiObject } from '../objects/object.ts';
import type { NameRule } from '../objects/names.ts';
import type { TableShape } from '../tables/table.ts';

export interface Subresource {
  readonly name: string;
  /** Kind of its bodies; group and version are those of the resource by default. */
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
}

/** What strategies can read while they prepare an object. */
export interface StrategyContext {
  readonly now: Date;
  /** Current object of another built-in kind, by collection. */
  readonly find: (collection: string, namespace: string, name: string) => ApiObject | undefined;
  /** All objects of a collection; only for small ones. */
  readonly all: (collection: string) => readonly ApiObject[];
}

/** The rules of one kind in addition to those of every kind. Functions change the object that they are given. */
export interface Strategy {
  /** The format of `metadata.name`. */
  readonly nameRule: NameRule;
  /** The main endpoint does not change `status`, the status endpoint only that. */
  readonly hasStatus: boolean;
  /** `metadata.generation` counts changes of the spec. */
  readonly hasGeneration: boolean;
  /** A PUT to an unused name creates. */
  readonly createsOnUpdate?: boolean;
  /** An update without a resourceVersion is rejected. */
  readonly needsVersion?: boolean;
  /** A deletion returns the object instead of a Status. */
  readonly returnsDeleted?: boolean;
  /** How often an update validates the common metadata; default 3. */
  readonly metadataChecks?: number;
  /** The storage has one form; another version of the same resource may return another. */
  readonly toStorage?: (object: ApiObject) => ApiObject;
  readonly fromStorage?: (object: ApiObject) => ApiObject;
  /** Called with the object from the client, before managed fields and admission. */
  readonly defaults?: (object: ApiObject) => void;
  readonly prepareCreate?: (object: ApiObject, context: StrategyContext) => void;
  readonly prepareUpdate?: (object: ApiObject, old: ApiObject, context: StrategyContext) => void;
  readonly prepareStatus?: (object: ApiObject, old: ApiObject) => void;
  readonly validate?: (object: ApiObject, context: StrategyContext) => readonly Cause[];
  readonly validateUpdate?: (object: ApiObject, old: ApiObject) => readonly Cause[];
  /** Whether the main endpoint changed the desired state; by default the spec. */
  readonly bumpsGeneration?: (object: ApiObject, old: ApiObject) => boolean;
  /** Grace period in seconds; undefined when deletion is immediate. */
  readonly graceSeconds?: (object: ApiObject, asked: number | undefined) => number;
  /** Field selectors other than metadata.name and metadata.namespace. */
  readonly selectable?: (object: ApiObject) => Readonly<Record<string, string>>;
}

export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  readonly subresources: readonly Subresource[];
  /** The collection of its objects; shared by all versions of a resource. */
  readonly collection: string;
  /** apiVersion in which objects are stored. */
  readonly storageApiVersion: string;
  /** Set for resources of a CustomResourceDefinition. */
  readonly custom: CustomPart | undefined;
  readonly schema: () => JsonSchema | undefined;
  readonly strategy: Strategy;
  readonly table: TableShape;
}

export interface CustomPart {
  readonly crdName: string;
  /** Changes with the definition. */
  readonly revision: string;
  /** Printable warning when the version is deprecated. */
  readonly deprecation: string | undefined;
  readonly scale: ScalePaths | undefined;
  readonly selectableFields: readonly string[];
}

export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

export const collectionOf = (group: string, plural: string): string => (group === '' ? plural : `${plural}.${group}`);

export const groupVersion = (group: string, version: string): string =>
  group === '' ? version : `${group}/${version}`;

export const apiVersionOf = (resource: Pick<Resource, 'group' | 'version'>): string =>
  groupVersion(resource.group, resource.version);

export const subresourceOf = (resource: Resource, name: string): Subresource | undefined =>
  resource.subresources.find((subresource) => subresource.name === name);

/** The stored object in the version and form of `resource`. Changes its argument. */
export const present = (resource: Resource, stored: ApiObject): ApiObject => {
  const object = resource.strategy.fromStorage?.(stored) ?? stored;
  object.apiVersion = apiVersionOf(resource);
  object.kind = resource.kind;
  return object;
};

/** The object as stored. */
export const toStored = (resource: Resource, object: ApiObject): ApiObject => ({
  ...(resource.strategy.toStorage?.(object) ?? object),
  apiVersion: resource.storageApiVersion,
});

/** The order of API versions: stable ones first, then beta, then alpha, newest first; other names last. */
const parse = (version: string): readonly [number, number, number] | undefined => {
  const found = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (found === null) return undefined;
  const stage = found[2] === undefined ? 2 : found[2] === 'beta' ? 1 : 0;
  return [stage, Number(found[1]), Number(found[3] ?? 0)];
};

/** Compares for sorting, most preferred first. */
export const compareVersions = (left: string, right: string): number => {
  const [a, b] = [parse(left), parse(right)];
  if (a === undefined || b === undefined) {
    return a === b ? left.localeCompare(right) : a === undefined ? 1 : -1;
  }
  return b[0] - a[0] || b[1] - a[1] || b[2] - a[2];
};
