// All resources that the server serves at this moment: the built-in ones and those of the stored CustomResourceDefinitions.
import { builtinResources, groupOrder } from '../builtin/catalog.ts';
import type { Entry } from '../store/change.ts';
import type { Store } from '../store/store.ts';
import { customResources, isEstablished } from './custom.ts';
import type { Resource } from './resource.ts';
import { compareVersions } from './resource.ts';

export const crdCollection = 'customresourcedefinitions.apiextensions.k8s.io';

export interface GroupVersions {
  readonly group: string;
  /** Preferred first. */
  readonly versions: readonly { readonly version: string; readonly resources: readonly Resource[] }[];
}

export interface Registry {
  readonly find: (group: string, version: string, plural: string) => Resource | undefined;
  readonly byKind: (group: string, version: string, kind: string) => Resource | undefined;
  /** Any version of a resource. */
  readonly versionsOf: (group: string, plural: string) => readonly Resource[];
  /** In the order of discovery. */
  readonly groups: () => readonly GroupVersions[];
  readonly all: () => readonly Resource[];
  /** Counts the changes of served resources; the key of cached discovery documents. */
  readonly revision: () => number;
}

interface Index {
  readonly byPath: ReadonlyMap<string, Resource>;
  readonly byKind: ReadonlyMap<string, Resource>;
  readonly groups: readonly GroupVersions[];
}

const groupsOf = (resources: readonly Resource[]): GroupVersions[] => {
  const grouped = Map.groupBy(resources, (resource) => resource.group);
  const custom = [...grouped.keys()].filter((group) => !groupOrder.includes(group)).toSorted();
  return [...groupOrder, ...custom].flatMap((group) => {
    const members = grouped.get(group);
    if (members === undefined) return [];
    const byVersion = Map.groupBy(members, (resource) => resource.version);
    const versions = [...byVersion.keys()].toSorted(compareVersions);
    return [{ group, versions: versions.map((version) => ({ version, resources: byVersion.get(version) ?? [] })) }];
  });
};

const buildIndex = (resources: readonly Resource[]): Index => ({
  byPath: new Map(resources.map((resource) => [`${resource.group}/${resource.version}/${resource.plural}`, resource])),
  byKind: new Map(resources.map((resource) => [`${resource.group}/${resource.version}/${resource.kind}`, resource])),
  groups: groupsOf(resources),
});

/** The current definitions; there are few of them. */
const definitions = (store: Store): readonly Entry[] =>
  store.page({ collection: crdCollection, limit: 100_000 }).entries;

/** Watches the definitions in the store until the store is closed. */
export const createRegistry = (store: Store): Registry => {
  let revision = 0;
  let index: Index | undefined;
  /** Resources are kept as long as their definition is unchanged, so that compiled schemas are kept too. */
  const made = new Map<string, { readonly version: number; readonly resources: Resource[] }>();

  const resourcesOf = (entry: Entry): Resource[] => {
    const { name, version } = entry;
    const known = made.get(name);
    if (known?.version === version) return known.resources;
    const crd = entry.object();
    const resources = isEstablished(crd) ? customResources(crd) : [];
    made.set(name, { version, resources });
    return resources;
  };

  store.subscribe(crdCollection, () => {
    index = undefined;
    revision += 1;
  });
  const current = (): Index =>
    (index ??= buildIndex([...builtinResources, ...definitions(store).flatMap(resourcesOf)]));

  return {
    find: (group, version, plural) => current().byPath.get(`${group}/${version}/${plural}`),
    byKind: (group, version, kind) => current().byKind.get(`${group}/${version}/${kind}`),
    versionsOf: (group, plural) =>
      [...current().byPath.values()].filter((resource) => resource.group === group && resource.plural === plural),
    groups: () => current().groups,
    all: () => [...current().byPath.values()],
    revision: () => revision,
  };
};
