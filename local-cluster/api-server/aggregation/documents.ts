// Adds the resources of extension servers to the discovery and OpenAPI documents of this server.
import { compareVersions } from '../registry/resource.ts';
import { type Fields, listAt, textAt } from '../objects/object.ts';
import type { Described } from './availability.ts';

const parse = (described: readonly Described[]) =>
  [...Map.groupBy(described, ({ extension }) => extension.group)].map(([group, members]) => ({
    group,
    members: members.toSorted((a, b) => compareVersions(a.extension.version, b.extension.version)),
  }));

/** As `/apis` lists groups. */
export const extensionGroups = (described: readonly Described[]) =>
  parse(described).map(({ group, members }) => {
    const versions = members.map(({ extension: { version } }) => ({ groupVersion: `${group}/${version}`, version }));
    return { name: group, versions, preferredVersion: versions[0] };
  });

/** Of the form `widgets/status`. */
const isSubresource = (resource: Fields): boolean => textAt(resource, 'name')?.includes('/') === true;

const responseKind = (resource: Fields) => ({
  group: textAt(resource, 'group') ?? '',
  version: textAt(resource, 'version') ?? '',
  kind: textAt(resource, 'kind') ?? '',
});

const aggregatedResource = (resource: Fields, all: readonly Fields[]) => {
  const name = textAt(resource, 'name') ?? '';
  const subresources = all.filter((other) => textAt(other, 'name')?.startsWith(`${name}/`) === true);
  return {
    resource: name,
    responseKind: responseKind(resource),
    scope: resource['namespaced'] === true ? 'Namespaced' : 'Cluster',
    singularResource: textAt(resource, 'singularName') ?? '',
    verbs: resource['verbs'],
    ...(resource['shortNames'] === undefined ? {} : { shortNames: resource['shortNames'] }),
    ...(resource['categories'] === undefined ? {} : { categories: resource['categories'] }),
    ...(subresources.length === 0
      ? {}
      : {
          subresources: subresources.map((one) => ({
            subresource: textAt(one, 'name')?.slice(name.length + 1),
            responseKind: responseKind(one),
            verbs: one['verbs'],
          })),
        }),
  };
};

/** As in an APIGroupDiscoveryList. A server that does not answer now is listed with its last answer, as stale. */
export const extensionDiscovery = (described: readonly Described[]) =>
  parse(described).map(({ group, members }) => ({
    metadata: { name: group },
    versions: members.map(({ extension, resources }) => {
      const all = resources === undefined ? [] : listAt(resources, 'resources');
      return {
        version: extension.version,
        resources: all.filter((one) => !isSubresource(one)).map((one) => aggregatedResource(one, all)),
        freshness: extension.isAvailable ? 'Current' : 'Stale',
      };
    }),
  }));
