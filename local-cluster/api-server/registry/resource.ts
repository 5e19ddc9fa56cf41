// What the server knows about one served resource: how it is named, what may be done with it, and the rules its objects follow.
import type { JsonSchema } from '../schema/json-schema.ts';
import type { Cause } from '../schema/cause.ts';
import type { ApiObject } from '../objects/object.ts';
import type { NameRule } from '../objects/names.ts';
import type { TableShape } from '../tables/table.ts';

export interface Subresource {
  readonly name: string;
  /** Kind of the bodies it takes; group and version are those of the resource unless told. */
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
}

/** What strategies may look up while they prepare an object. */
export interface StrategyContext {
  readonly now: Date;
  /** Live object of another built-in kind, by collection. */
  readonly find: (collection: string, namespace: string, name: string) => ApiObject | undefined;
  /** All objects of a collection; only for small ones. */
  readonly all: (collection: string) => readonly ApiObject[];
}

/** The rules of one kind beyond those every kind shares. Functions change the object they are given. */
export interface Strategy {
  /** How `metadata.name` must look. */
  readonly nameRule: NameRule;
  /** The main endpoint leaves `status` alone, the status endpoint everything else. */
  readonly hasStatus: boolean;
  /** `metadata.generation` counts changes of what the user wants. */
  readonly hasGeneration: boolean;
  /** A PUT to a name that is free creates. */
  readonly createsOnUpdate?: boolean;
  /** An update without a resourceVersion is refused. */
  readonly needsVersion?: boolean;
  /** A deletion answers with the object instead of a Status. */
  readonly returnsDeleted?: boolean;
  /** How often an update checks what holds for all metadata; 3 when left out. */
  readonly metadataChecks?: number;
  /** The storage keeps one shape; another version of the same resource may show another. */
  readonly toStorage?: (object: ApiObject) => ApiObject;
  readonly fromStorage?: (object: ApiObject) => ApiObject;
  /** Runs on what a client sent, before managed fields and admission. */
  readonly defaults?: (object: ApiObject) => void;
  readonly prepareCreate?: (object: ApiObject, context: StrategyContext) => void;
  readonly prepareUpdate?: (object: ApiObject, old: ApiObject, context: StrategyContext) => void;
  readonly prepareStatus?: (object: ApiObject, old: ApiObject) => void;
  readonly validate?: (object: ApiObject, context: StrategyContext) => readonly Cause[];
  readonly validateUpdate?: (object: ApiObject, old: ApiObject) => readonly Cause[];
  /** Whether the main endpoint changed what the user wants; the spec, when left out. */
  readonly bumpsGeneration?: (object: ApiObject, old: ApiObject) => boolean;
  /** Seconds an object may live on after its deletion; undefined where deletion is at once. */
  readonly graceSeconds?: (object: ApiObject, asked: number | undefined) => number;
  /** Field selectors beside metadata.name and metadata.namespace. */
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
  /** Where its objects are stored; shared by all versions of a resource. */
  readonly collection: string;
  /** apiVersion under which objects are stored. */
  readonly storageApiVersion: string;
  /** Set for resources that a CustomResourceDefinition brings. */
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

/** The stored object in the version and shape of `resource`. Changes what it is given. */
export const present = (resource: Resource, stored: ApiObject): ApiObject => {
  const object = resource.strategy.fromStorage?.(stored) ?? stored;
  object.apiVersion = apiVersionOf(resource);
  object.kind = resource.kind;
  return object;
};

/** The object as the store keeps it. */
export const toStored = (resource: Resource, object: ApiObject): ApiObject => ({
  ...(resource.strategy.toStorage?.(object) ?? object),
  apiVersion: resource.storageApiVersion,
});

/** The order of API versions: general availability first, then beta, then alpha, newest first; odd names last. */
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
