// The source of a VolumeSnapshot: the volume, the class, and the content that will be bound to it.
import { type VolumeMode, persistentVolumeClaims, persistentVolumes } from '#shared/api/foreign/core.ts';
import {
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
  volumeSnapshotClasses,
  volumeSnapshotContents,
} from '#shared/api/foreign/snapshot.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { canCopy, defaultClassAnnotations } from '#local-cluster/controllers/volumes/classes.ts';
import { capacityOf, driverOf, handleOf, volumeModeOf } from '#local-cluster/controllers/volumes/facts.ts';

/** On a content until its files are deleted. */
export const contentFinalizer = 'snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection';

export const contentNameOf = (snapshot: VolumeSnapshot): string =>
  snapshot.spec.source.volumeSnapshotContentName ??
  snapshot.status?.boundVolumeSnapshotContentName ??
  `snapcontent-${snapshot.metadata.uid ?? ''}`;

export interface Source {
  readonly content: VolumeSnapshotContent;
  readonly bytes: number;
  readonly className?: string;
}

export type Found = Source | { readonly obstacle: string };

/** The content to fill (not created yet unless it is named), or the obstacle. */
export const findSource = async (kube: KubeClient, snapshot: VolumeSnapshot): Promise<Found> => {
  const { persistentVolumeClaimName, volumeSnapshotContentName } = snapshot.spec.source;
  if (volumeSnapshotContentName !== undefined) return findPrepared(kube, snapshot, volumeSnapshotContentName);
  const volume = await findVolume(kube, {
    namespace: snapshot.metadata.namespace,
    name: persistentVolumeClaimName ?? '',
  });
  if ('obstacle' in volume) return volume;
  const chosen = await chooseClass(kube, snapshot, volume.driver);
  if ('obstacle' in chosen) return chosen;
  return { content: buildContent(snapshot, chosen, volume), bytes: volume.bytes, className: chosen.metadata.name };
};

interface VolumeFacts {
  readonly driver: string;
  readonly handle: string;
  readonly mode: VolumeMode;
  readonly bytes: number;
}

const findVolume = async (kube: KubeClient, key: ObjectKey): Promise<VolumeFacts | { readonly obstacle: string }> => {
  const claim = await kube.get(persistentVolumeClaims, key);
  if (claim === undefined) return { obstacle: `claim "${key.name}" not found` };
  const name = claim.spec.volumeName ?? '';
  const volume = name === '' ? undefined : await kube.get(persistentVolumes, { name });
  if (claim.status?.phase !== 'Bound' || volume === undefined) return { obstacle: `claim "${key.name}" is not bound` };
  const driver = driverOf(volume);
  if (!canCopy(driver)) return { obstacle: `driver "${driver}" of claim "${key.name}" cannot take snapshots` };
  return {
    driver,
    handle: handleOf(volume),
    mode: volumeModeOf(volume.spec),
    bytes: capacityOf(volume),
  };
};

const findPrepared = async (kube: KubeClient, snapshot: VolumeSnapshot, name: string): Promise<Found> => {
  const content = await kube.get(volumeSnapshotContents, { name });
  if (content === undefined) return { obstacle: `snapshot content "${name}" not found` };
  const ref = content.spec.volumeSnapshotRef;
  const isMeant = ref.name === snapshot.metadata.name && ref.namespace === snapshot.metadata.namespace;
  if (!isMeant || (ref.uid !== undefined && ref.uid !== snapshot.metadata.uid)) {
    return { obstacle: `snapshot content "${name}" belongs to another snapshot` };
  }
  return { content, bytes: content.status?.restoreSize ?? (await sizeOf(kube, content.spec.source.snapshotHandle)) };
};

/** Bytes of a snapshot that another content stands for. */
const sizeOf = async (kube: KubeClient, handle: string | undefined): Promise<number> => {
  const { items } = await kube.list(volumeSnapshotContents);
  return (
    items.find(({ status }) => handle !== undefined && status?.snapshotHandle === handle)?.status?.restoreSize ?? 0
  );
};

const chooseClass = async (
  kube: KubeClient,
  snapshot: VolumeSnapshot,
  driver: string,
): Promise<VolumeSnapshotClass | { readonly obstacle: string }> => {
  const name = snapshot.spec.volumeSnapshotClassName;
  if (name === undefined) {
    const { items } = await kube.list(volumeSnapshotClasses);
    const isDefault = (item: VolumeSnapshotClass): boolean =>
      item.driver === driver && item.metadata.annotations?.[defaultClassAnnotations.snapshot] === 'true';
    return (
      items.find(isDefault) ?? {
        obstacle: `no default snapshot class for driver "${driver}": set volumeSnapshotClassName`,
      }
    );
  }
  const chosen = await kube.get(volumeSnapshotClasses, { name });
  if (chosen === undefined) return { obstacle: `snapshot class "${name}" not found` };
  if (chosen.driver === driver) return chosen;
  return {
    obstacle: `snapshot class "${name}" is for driver "${chosen.driver}", but the volume belongs to "${driver}"`,
  };
};

const buildContent = (
  snapshot: VolumeSnapshot,
  snapshotClass: VolumeSnapshotClass,
  volume: VolumeFacts,
): VolumeSnapshotContent => ({
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshotContent',
  metadata: { name: contentNameOf(snapshot), finalizers: [contentFinalizer] },
  spec: {
    deletionPolicy: snapshotClass.deletionPolicy,
    driver: snapshotClass.driver,
    source: { volumeHandle: volume.handle },
    sourceVolumeMode: volume.mode,
    volumeSnapshotClassName: snapshotClass.metadata.name,
    volumeSnapshotRef: {
      namespace: snapshot.metadata.namespace ?? 'default',
      name: snapshot.metadata.name,
      uid: snapshot.metadata.uid ?? '',
    },
  },
});
