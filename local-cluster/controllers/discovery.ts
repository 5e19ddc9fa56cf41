// Every kind that the API server serves now, in its preferred version. Called by the garbage collector, by namespace deletion
// and by code that applies manifests.
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isNotFound, messageOf } from '#shared/runtime/errors.ts';

interface ResourceList {
  readonly resources?: readonly {
    readonly name: string;
    readonly kind: string;
    readonly namespaced: boolean;
    readonly verbs?: readonly string[];
  }[];
}

interface GroupList {
  readonly groups?: readonly {
    readonly name: string;
    readonly preferredVersion?: { readonly version: string };
    readonly versions: readonly { readonly version: string }[];
  }[];
}

export interface Discovered {
  readonly types: readonly ResourceType[];
  /** Groups whose discovery failed, with the reason: their resources are unknown. */
  readonly failed: readonly { readonly group: string; readonly message: string }[];
}

/** Kinds with a short lifetime that own nothing. */
const ignored = new Set(['events', 'leases.coordination.k8s.io', 'events.events.k8s.io']);

/** Kinds that can be listed, watched and deleted. Throws Unavailable when the server is unreachable. */
export const discover = async (kube: KubeClient): Promise<Discovered> => {
  const { groups = [] } = await kube.raw<GroupList>({ method: 'GET', path: '/apis' });
  const versions = groups.map((group) => ({
    group: group.name,
    version: group.preferredVersion?.version ?? group.versions[0]?.version ?? 'v1',
  }));
  const types: ResourceType[] = [];
  const failed: { readonly group: string; readonly message: string }[] = [];
  for (const { group, version } of [{ group: '', version: 'v1' }, ...versions]) {
    try {
      types.push(...(await discoverVersion(kube, group, version)));
    } catch (error) {
      // Its last definition was deleted after the groups were listed.
      if (!isNotFound(error)) failed.push({ group, message: messageOf(error) });
    }
  }
  return { types, failed };
};

/** Those of one group and version. Throws NotFound when the server serves none. */
export const discoverVersion = async (
  kube: KubeClient,
  group: string,
  version: string,
): Promise<readonly ResourceType[]> => {
  const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const { resources = [] } = await kube.raw<ResourceList>({ method: 'GET', path });
  return resources.filter(isManaged(group)).map(toType(group, version));
};

type Resource = NonNullable<ResourceList['resources']>[number];

const isManaged =
  (group: string) =>
  ({ name, verbs = [] }: Resource): boolean =>
    !name.includes('/') &&
    ['list', 'watch', 'delete'].every((verb) => verbs.includes(verb)) &&
    !ignored.has(group === '' ? name : `${name}.${group}`);

const toType =
  (group: string, version: string) =>
  ({ name, kind, namespaced }: Resource): ResourceType => ({ group, version, kind, plural: name, namespaced });

/** Identifies a kind independently of its version. */
export const kindText = ({ group, plural }: Pick<ResourceType, 'group' | 'plural'>): string => `${plural}.${group}`;
