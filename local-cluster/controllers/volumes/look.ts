// Reads everything about a claim for plan.ts: class, volume, and data source. Decides nothing.
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { type BackingImage, backingImages, longhornDriver, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { defaultClassAnnotations } from '#local-cluster/controllers/volumes/classes.ts';
import { capacityOf, driverOf, handleOf, isBound, volumeModeOf } from '#local-cluster/controllers/volumes/facts.ts';
import type { ClaimSeen, SourceSeen } from '#local-cluster/controllers/volumes/plan.ts';

/** Reads everything a plan for this claim needs. */
export const look = async (kube: KubeClient, claim: PersistentVolumeClaim): Promise<ClaimSeen> => ({
  claim,
  storageClass: await classOf(kube, claim.spec.storageClassName),
  volume: await volumeOf(kube, claim),
  source: (await sourceOf(kube, claim)) ?? (await imageOf(kube, claim)),
});

/** The disk that volumes of a class are copied from, if it was created for a backing image. */
const imageOf = async (kube: KubeClient, { spec, status }: PersistentVolumeClaim): Promise<SourceSeen | undefined> => {
  if (status?.phase === 'Bound') return undefined;
  const storageClass = await classOf(kube, spec.storageClassName);
  const name = storageClass?.provisioner === longhornDriver ? storageClass.parameters?.['backingImage'] : undefined;
  if (name === undefined) return undefined;
  return backingImageSource(await kube.get(backingImages, { namespace: longhornNamespace, name }), name);
};

const backingImageSource = (image: BackingImage | undefined, name: string): SourceSeen => {
  const what = `backing image "${name}"`;
  if (image === undefined) return { kind: 'missing', what };
  const { uuid, virtualSize = 0, diskFileStatusMap } = image.status ?? {};
  const isReady = Object.values(diskFileStatusMap ?? {}).some(({ state }) => state === 'ready');
  if (!isReady || uuid === undefined) return { kind: 'unready', what };
  const from = { what: 'image', handle: uuid } as const;
  return { kind: 'ready', what, from, driver: longhornDriver, mode: 'Block', bytes: virtualSize };
};

/** `undefined` means the default class, the empty name none. */
const classOf = async (kube: KubeClient, name: string | undefined): Promise<StorageClass | undefined> => {
  if (name === '') return undefined;
  if (name !== undefined) return kube.get(storageClasses, { name });
  const { items } = await kube.list(storageClasses);
  return items.find((item) => item.metadata.annotations?.[defaultClassAnnotations.storage] === 'true');
};

const volumeOf = async (kube: KubeClient, claim: PersistentVolumeClaim): Promise<PersistentVolume | undefined> => {
  const { volumeName } = claim.spec;
  if (volumeName !== undefined && volumeName !== '') {
    const volume = await kube.get(persistentVolumes, { name: volumeName });
    const owner = volume?.spec.claimRef;
    return owner === undefined || isFor(owner, claim) || claim.status?.phase === 'Bound' ? volume : undefined;
  }
  const { items } = await kube.list(persistentVolumes);
  return items.find((volume) => volume.spec.claimRef?.uid === claim.metadata.uid);
};

/** A volume can be reserved for a claim by name, before that has a UID. */
const isFor = (ref: NonNullable<PersistentVolume['spec']['claimRef']>, { metadata }: PersistentVolumeClaim): boolean =>
  ref.uid === undefined || ref.uid === ''
    ? ref.namespace === metadata.namespace && ref.name === metadata.name
    : ref.uid === metadata.uid;

const sourceOf = async (kube: KubeClient, claim: PersistentVolumeClaim): Promise<SourceSeen | undefined> => {
  const reference = claim.spec.dataSourceRef ?? claim.spec.dataSource;
  if (reference === undefined || claim.status?.phase === 'Bound') return undefined;
  const { namespace } = claim.metadata;
  if (reference.namespace !== undefined && reference.namespace !== namespace) return { kind: 'foreign' };
  const key = { namespace, name: reference.name };
  if (reference.kind === 'PersistentVolumeClaim') return claimSource(kube, key);
  if (reference.kind === 'VolumeSnapshot') return snapshotSource(kube, key);
  return { kind: 'foreign' };
};

const claimSource = async (kube: KubeClient, key: ObjectKey): Promise<SourceSeen> => {
  const what = `claim "${key.name}"`;
  const claim = await kube.get(persistentVolumeClaims, key);
  if (claim === undefined) return { kind: 'missing', what };
  if (claim.metadata.deletionTimestamp !== undefined) return { kind: 'deleting', what };
  const volume = await kube.get(persistentVolumes, { name: claim.spec.volumeName || 'none' });
  if (!isBound(claim) || volume === undefined) return { kind: 'unready', what };
  const from = { what: 'volume', handle: handleOf(volume) } as const;
  const [driver, mode, bytes] = [driverOf(volume), volumeModeOf(volume.spec), capacityOf(volume)];
  return { kind: 'ready', what, from, driver, mode, bytes };
};

const snapshotSource = async (kube: KubeClient, key: ObjectKey): Promise<SourceSeen> => {
  const what = `snapshot "${key.name}"`;
  const snapshot = await kube.get(volumeSnapshots, key);
  if (snapshot === undefined) return { kind: 'missing', what };
  if (snapshot.metadata.deletionTimestamp !== undefined) return { kind: 'deleting', what };
  const { readyToUse, boundVolumeSnapshotContentName: name } = snapshot.status ?? {};
  const content = name === undefined ? undefined : await kube.get(volumeSnapshotContents, { name });
  const handle = content?.status?.snapshotHandle;
  if (readyToUse !== true || content === undefined || handle === undefined) return { kind: 'unready', what };
  const { driver, sourceVolumeMode } = content.spec;
  const mode = volumeModeOf({ volumeMode: sourceVolumeMode });
  const bytes = content.status?.restoreSize ?? 0;
  return { kind: 'ready', what, from: { what: 'snapshot', handle }, driver, mode, bytes };
};
