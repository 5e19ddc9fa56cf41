// What a DataSource stands for, as far as it can be followed. Reads, and decides nothing.
import { type DataSource, type DataSourceSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { DataSourceResource } from '#shared/resources/data-source/resource.ts';

/** `key` names what was looked for. */
export type Followed =
  | { readonly to: 'nothing' }
  | {
      readonly to: 'volume';
      readonly key: Required<ObjectKey>;
      readonly volume: PersistentVolumeClaim | undefined;
      readonly dataVolume: DataVolume | undefined;
    }
  | { readonly to: 'snapshot'; readonly key: Required<ObjectKey>; readonly snapshot: VolumeSnapshot | undefined };

export type ObservedDataSource =
  | Followed
  | { readonly to: 'other-namespace' }
  | { readonly to: 'itself' }
  | { readonly to: 'pointer' }
  | { readonly to: 'missing'; readonly name: string };

/** One hop, in the same namespace. */
export const check = async (
  kube: KubeClient,
  { object, namespace }: DataSourceResource,
): Promise<ObservedDataSource> => {
  const pointer = object.spec.source.dataSource;
  if (pointer === undefined) return follow(kube, object.spec.source, namespace);
  if ((pointer.namespace ?? namespace) !== namespace) return { to: 'other-namespace' };
  if (pointer.name === object.metadata.name) return { to: 'itself' };
  const target: DataSource | undefined = await kube.get(dataSourceKind.type, { namespace, name: pointer.name });
  if (target === undefined) return { to: 'missing', name: pointer.name };
  return target.spec.source.dataSource === undefined ? follow(kube, target.spec.source, namespace) : { to: 'pointer' };
};

const follow = async (kube: KubeClient, { pvc, snapshot }: DataSourceSource, own: string): Promise<Followed> => {
  if (pvc !== undefined) {
    const key = { namespace: pvc.namespace ?? own, name: pvc.name };
    const [volume, dataVolume] = await Promise.all([kube.get(persistentVolumeClaims, key), kube.get(dataVolumes, key)]);
    return { to: 'volume', key, volume, dataVolume };
  }
  if (snapshot === undefined) return { to: 'nothing' };
  const key = { namespace: snapshot.namespace ?? own, name: snapshot.name };
  return { to: 'snapshot', key, snapshot: await kube.get(volumeSnapshots, key) };
};
