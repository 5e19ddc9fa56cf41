// What consumers of images are found in.
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { imageTypes } from '#shared/catalogue/image.ts';
import { otherTypes, readAll } from '#shared/catalogue/objects.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Inventory } from '#shared/resources/consumers.ts';

/** A kind that may not be listed: anywhere, or outside one namespace. */
export interface LeftOut {
  readonly kind: string;
  readonly outside?: string | undefined;
}

interface Listing<T> {
  readonly items: readonly T[];
  /** `undefined`: nothing is missing. */
  readonly leftOut: LeftOut | undefined;
}

/** As kubectl names a kind. */
export const nameOf = ({ plural, group }: Pick<ResourceType, 'plural' | 'group'>): string =>
  group === '' ? plural : `${plural}.${group}`;

/** In every namespace, or, for those who may not, in their own. A kind that the cluster lacks has no objects. */
const list = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  namespaces: readonly (string | undefined)[],
): Promise<Listing<T>> => {
  const [namespace, ...others] = namespaces;
  const read = await readAll(kube, type, { namespace });
  if (read.is !== 'denied') return { items: read.is === 'read' ? read.items : [], leftOut: undefined };
  const rest = others.length === 0 ? undefined : await list(kube, type, others);
  if (rest === undefined || rest.leftOut !== undefined) return { items: [], leftOut: { kind: nameOf(type) } };
  return { items: rest.items, leftOut: { kind: nameOf(type), outside: others[0] } };
};

const placeOf = ({ outside }: LeftOut): string => (outside === undefined ? '' : ` outside namespace ${outside}`);

export const leftOutName = (one: LeftOut): string => `${one.kind}${placeOf(one)}`;

/** More kinds than these are only counted in a message. */
const mostKinds = 4;

/** For people: each place once. */
export const leftOutWords = (all: readonly LeftOut[]): string =>
  [...Map.groupBy(all, placeOf)]
    .map(([place, those]) => {
      const named = those.slice(0, mostKinds).map(({ kind }) => kind);
      const rest = those.length > named.length ? ` and ${those.length - named.length} more kinds` : '';
      return `${named.join(', ')}${rest}${place}`;
    })
    .join('; ');

const servedTypes = [...Object.values(imageTypes), ...otherTypes].filter(
  ({ kind }) => kind !== 'PersistentVolumeClaim',
);

/** Everything that may be made from something else, as far as this person may see it: in every namespace, or in this one. */
export const readInventory = async (
  kube: KubeClient,
  namespace: string | undefined,
  { withMachines = true }: { readonly withMachines?: boolean } = {},
): Promise<Inventory & { readonly isPartial: boolean; readonly leftOut: readonly LeftOut[] }> => {
  const where = namespace === undefined ? [undefined] : [undefined, namespace];
  const [claims, snapshots, machines, ...objects] = await Promise.all([
    list(kube, persistentVolumeClaims, where),
    list(kube, volumeSnapshots, where),
    withMachines ? list(kube, virtualMachines, where) : { items: [], leftOut: undefined },
    ...servedTypes.map((type): Promise<Listing<KubeObject>> => list(kube, type, where)),
  ]);
  const leftOut = [claims, snapshots, machines, ...objects].flatMap((one) => one.leftOut ?? []);
  return {
    claims: claims.items,
    snapshots: snapshots.items,
    machines: machines.items,
    objects: objects.flatMap(({ items }) => items),
    isPartial: leftOut.length > 0,
    leftOut,
  };
};
