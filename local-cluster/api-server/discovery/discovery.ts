// Discovery documents: the served groups, versions and resources, in the classic and in the aggregated form.
import { createHash } from 'node:crypto';
import type { GroupVersions, Registry } from '../registry/registry.ts';
import { type Resource, groupVersion } from '../registry/resource.ts';
import type { Described } from '../aggregation/availability.ts';
import { extensionDiscovery, extensionGroups } from '../aggregation/documents.ts';

const groupOf = ({ group, versions }: GroupVersions) => {
  const named = versions.map(({ version }) => ({ groupVersion: groupVersion(group, version), version }));
  return { name: group, versions: named, preferredVersion: named[0] };
};

const storageHash = (resource: Resource): string =>
  createHash('sha512')
    .update(`${resource.group}/${resource.storageApiVersion}/${resource.kind}`)
    .digest('base64')
    .slice(0, 11) + '=';

const isStored = (resource: Resource): boolean => resource.verbs.includes('list');

const entriesOf = (resource: Resource) => [
  {
    name: resource.plural,
    singularName: resource.singular,
    namespaced: resource.namespaced,
    kind: resource.kind,
    verbs: resource.verbs,
    ...(resource.shortNames.length === 0 ? {} : { shortNames: resource.shortNames }),
    ...(resource.categories.length === 0 ? {} : { categories: resource.categories }),
    ...(isStored(resource) ? { storageVersionHash: storageHash(resource) } : {}),
  },
  ...resource.subresources.map((sub) => ({
    name: `${resource.plural}/${sub.name}`,
    singularName: '',
    namespaced: resource.namespaced,
    ...(sub.group === undefined ? {} : { group: sub.group, version: sub.version }),
    kind: sub.kind,
    verbs: sub.verbs,
  })),
];

/** Core resources are sorted by name, the others are in the order of their definition. */
const sorted = (resources: readonly Resource[]): Resource[] =>
  resources.toSorted((a, b) => (a.plural < b.plural ? -1 : 1));

const responseKind = (resource: Resource, of: { readonly group?: string; readonly version?: string }, kind: string) => {
  const own = resource.custom === undefined ? { group: '', version: '' } : resource;
  return { group: of.group ?? own.group, kind, version: of.version ?? own.version };
};

/** Built-in resources omit group and version when they are those of the list. */
const aggregatedResource = (resource: Resource) => ({
  resource: resource.plural,
  responseKind: responseKind(resource, {}, resource.kind),
  scope: resource.namespaced ? 'Namespaced' : 'Cluster',
  singularResource: resource.singular,
  verbs: resource.verbs,
  ...(resource.shortNames.length === 0 ? {} : { shortNames: resource.shortNames }),
  ...(resource.categories.length === 0 ? {} : { categories: resource.categories }),
  ...(resource.subresources.length === 0
    ? {}
    : {
        subresources: resource.subresources.map((sub) => ({
          subresource: sub.name,
          responseKind: responseKind(resource, sub, sub.kind),
          verbs: sub.verbs,
        })),
      }),
});

const aggregatedGroup = ({ group, versions }: GroupVersions) => ({
  metadata: group === '' ? {} : { name: group },
  versions: versions.map(({ version, resources }) => ({
    version,
    resources: sorted(resources).map(aggregatedResource),
    freshness: 'Current',
  })),
});

export interface Discovery {
  /** The document at a path below /api or /apis; undefined when there is none. `aggregated`: the client requested that form. */
  readonly document: (path: string, aggregated: string | undefined) => unknown;
}

/** `serverAddress` is the host and port that clients connect to, `extensions` the resources of other servers. */
export const createDiscovery = (
  registry: Registry,
  serverAddress: () => string,
  extensions: () => readonly Described[],
): Discovery => {
  const groups = (core: boolean): readonly GroupVersions[] =>
    registry.groups().filter(({ group }) => (group === '') === core);

  const aggregatedList = (core: boolean, version: string) => ({
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: [...groups(core).map(aggregatedGroup), ...(core ? [] : extensionDiscovery(extensions()))],
  });

  const resourceList = (group: string, version: string) => {
    const found = registry
      .groups()
      .find((item) => item.group === group)
      ?.versions.find((item) => item.version === version);
    if (found === undefined) return undefined;
    return {
      kind: 'APIResourceList',
      ...(group === '' ? {} : { apiVersion: 'v1' }),
      groupVersion: groupVersion(group, version),
      resources: sorted(found.resources).flatMap(entriesOf),
    };
  };

  const document = (path: string, aggregated: string | undefined): unknown => {
    const [root, first, second, ...more] = path.split('/').filter((part) => part !== '');
    if (more.length > 0) return undefined;
    if (root === 'api') {
      if (first !== undefined) return second === undefined ? resourceList('', first) : undefined;
      return aggregated === undefined ? coreVersions(serverAddress()) : aggregatedList(true, aggregated);
    }
    if (first === undefined) {
      return aggregated === undefined
        ? {
            kind: 'APIGroupList',
            apiVersion: 'v1',
            groups: [...groups(false).map(groupOf), ...extensionGroups(extensions())],
          }
        : aggregatedList(false, aggregated);
    }
    if (second !== undefined) return resourceList(first, second);
    const group = groups(false).find((item) => item.group === first);
    const found =
      group === undefined ? extensionGroups(extensions()).find(({ name }) => name === first) : groupOf(group);
    return found === undefined ? undefined : { kind: 'APIGroup', apiVersion: 'v1', ...found };
  };
  return { document };
};

const coreVersions = (serverAddress: string) => ({
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
});

/** The version of kube-apiserver whose behaviour this server reproduces. */
export const versionInfo = {
  major: '1',
  minor: '36',
  emulationMajor: '1',
  emulationMinor: '36',
  minCompatibilityMajor: '1',
  minCompatibilityMinor: '35',
  gitVersion: 'v1.36.3+bullion',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'go1.26',
  compiler: 'gc',
  platform: 'linux/amd64',
} as const;
