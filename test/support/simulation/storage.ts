// The provisioner and the snapshotter of a simulated cluster: volumes that are bound and filled from their source, and snapshots of them.
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
  csiDrivers,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
} from '#shared/api/foreign/core.ts';
import {
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/api/foreign/snapshot.ts';
import { isPrimed, selectedNode } from '#shared/populate/volume/prime.ts';
import { isOver } from '#test/support/simulation/jobs.ts';
import {
  type ClusterRecord,
  claimNamed,
  classOf,
  contentOf,
  creationOf,
  iso,
} from '#test/support/simulation/record.ts';
import { targetOf } from '#test/support/simulation/workers.ts';

/** The source from which the storage fills a claim; `undefined` for an empty one. */
const originOf = (
  record: ClusterRecord,
  { spec: { dataSource } }: PersistentVolumeClaim,
): { readonly isFilled: boolean } | 'not ready' | undefined => {
  if (dataSource === undefined) return undefined;
  const { kind, name } = dataSource;
  return (kind === 'VolumeSnapshot' ? record.snapshotContents.get(name) : contentOf(record, name)) ?? 'not ready';
};

export const stepVolume = (record: ClusterRecord, claim: PersistentVolumeClaim): void => {
  const { kube } = record;
  const { uid, deletionTimestamp } = claim.metadata;
  const isUsed = kube.all(pods).some((pod) => !isOver(pod) && targetOf(record, pod)?.metadata.uid === uid);
  if (deletionTimestamp !== undefined) return isUsed ? undefined : unprotect(record, claim);
  if (claim.status?.phase === 'Bound') return checkHeld(record, claim);
  if (claim.status?.phase === 'Lost') return;
  if (claim.spec.volumeName !== undefined) return bindPromised(record, claim);
  const storageClass = classOf(record, claim);
  if (storageClass === undefined) return;
  if (isPrimed(claim)) return stepPrimed(record, claim);
  if (isUsed || !isWaiting(claim, storageClass)) provision(record, claim, storageClass);
};

const isWaiting = ({ metadata }: PersistentVolumeClaim, { volumeBindingMode }: StorageClass): boolean =>
  volumeBindingMode === 'WaitForFirstConsumer' && metadata.annotations?.[selectedNode] === undefined;

const provision = (record: ClusterRecord, claim: PersistentVolumeClaim, storageClass: StorageClass): void => {
  const { kube, contents } = record;
  const { uid } = claim.metadata;
  const origin = originOf(record, claim);
  if (origin === 'not ready') return;
  if (origin !== undefined) contents.set(uid!, { isFilled: origin.isFilled, writers: 0 });
  const volumeName = buildPersistent(record, claim, storageClass);
  kube.edit(persistentVolumeClaims, claim.metadata, (edited) => {
    if (volumeName !== undefined) edited.spec.volumeName = volumeName;
    edited.status = { phase: 'Bound', capacity: edited.spec.resources?.requests ?? {} };
    const provisioner = { 'volume.kubernetes.io/storage-provisioner': storageClass.provisioner };
    edited.metadata.annotations = { ...edited.metadata.annotations, ...provisioner };
  });
};

// Persistent volumes, for scenarios that are about them (`record.volumes`, or storage with a driver).

const buildPersistent = (
  { kube, volumes }: ClusterRecord,
  { metadata, spec }: PersistentVolumeClaim,
  { provisioner }: StorageClass,
): string | undefined => {
  const hasDriver = kube.all(csiDrivers).some((driver) => driver.metadata.name === provisioner);
  if (volumes === undefined && !hasDriver) return undefined;
  const name = `pvc-${metadata.uid}`;
  const { namespace = '', name: claim, uid = '' } = metadata;
  volumes?.set(name, uid);
  kube.seed(persistentVolumes, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: String(spec.resources?.requests?.['storage'] ?? '1Gi') },
      accessModes: spec.accessModes ?? [],
      persistentVolumeReclaimPolicy: 'Delete',
      claimRef: { namespace, name: claim, uid },
    },
    status: { phase: 'Bound' },
  });
  return name;
};

/** A claim that names its volume gets it once that is reserved for it, with its content. */
const bindPromised = ({ kube, volumes, contents }: ClusterRecord, { metadata, spec }: PersistentVolumeClaim): void => {
  const volume = kube.all(persistentVolumes).find(({ metadata: { name } }) => name === spec.volumeName);
  const { claimRef } = volume?.spec ?? {};
  if (volume === undefined || claimRef?.name !== metadata.name || (claimRef.uid ?? metadata.uid) !== metadata.uid)
    return;
  const before = contents.get(volumes?.get(volume.metadata.name) ?? '');
  volumes?.set(volume.metadata.name, metadata.uid!);
  contents.set(metadata.uid!, before ?? { isFilled: false, writers: 0 });
  kube.edit(persistentVolumes, volume.metadata, (edited) => {
    edited.spec.claimRef = { ...claimRef, uid: metadata.uid! };
    edited.status = { phase: 'Bound' };
  });
  kube.edit(persistentVolumeClaims, metadata, (edited) => {
    edited.status = { phase: 'Bound', capacity: volume.spec.capacity };
  });
};

export const stepPersistentVolume = ({ kube, now }: ClusterRecord, volume: PersistentVolume): void => {
  const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec;
  if (claimRef?.uid === undefined) return;
  const claims = kube.all(persistentVolumeClaims);
  if (claims.some(({ metadata }) => metadata.uid === claimRef.uid)) return;
  kube.edit(persistentVolumes, volume.metadata, (edited) => {
    edited.status = { phase: 'Released' };
    if (policy !== 'Retain') edited.metadata.deletionTimestamp = iso(now());
  });
};

const persistentOf = ({ kube }: ClusterRecord, { spec: { volumeName } }: PersistentVolumeClaim) =>
  kube.all(persistentVolumes).find(({ metadata }) => metadata.name === volumeName);

/** A claim whose volume was bound to another one is lost. */
const checkHeld = (record: ClusterRecord, claim: PersistentVolumeClaim): void => {
  const holder = persistentOf(record, claim)?.spec.claimRef?.uid;
  if (holder === undefined || holder === claim.metadata.uid) return;
  record.kube.edit(persistentVolumeClaims, claim.metadata, (edited) => void (edited.status = { phase: 'Lost' }));
};

const consumerMs = 3000;

/** A pod that uses the claim is there soon, and starts as soon as the claim is bound: it must find a complete volume. */
const stepPrimed = (record: ClusterRecord, claim: PersistentVolumeClaim): void => {
  const { kube, now, later, contents, overwrites } = record;
  const { uid = '', name, annotations = {} } = claim.metadata;
  const given = kube.all(persistentVolumes).find(({ spec }) => spec.claimRef?.uid === uid);
  if (given !== undefined) {
    const content = contents.get(given.metadata.name.replace('pvc-', ''));
    if (content?.isFilled !== true) overwrites.push(`${name} is bound to a volume that is not complete`);
    if (content !== undefined) contents.set(uid, content);
    return kube.edit(persistentVolumeClaims, claim.metadata, (edited) => {
      edited.status = { phase: 'Bound', capacity: edited.spec.resources?.requests ?? {} };
      edited.spec.volumeName = given.metadata.name;
    });
  }
  if (annotations[selectedNode] !== undefined) return;
  if (now() - creationOf(claim) < consumerMs) return later(creationOf(claim) + consumerMs);
  kube.edit(persistentVolumeClaims, claim.metadata, (edited) => {
    edited.metadata.annotations = { ...edited.metadata.annotations, [selectedNode]: 'node' };
  });
};

const unprotect = ({ kube }: ClusterRecord, { metadata }: PersistentVolumeClaim): void =>
  kube.edit(persistentVolumeClaims, metadata, (edited) => {
    const { finalizers = [] } = edited.metadata;
    edited.metadata.finalizers = finalizers.filter((name) => !name.endsWith('pvc-protection'));
  });

export interface SnapshotOptions {
  /** Milliseconds until a snapshot is ready. */
  readonly snapshotMs?: number;
  /** Error of each snapshot. */
  readonly snapshotError?: string;
}

export const stepSnapshot = (
  record: ClusterRecord,
  snapshot: VolumeSnapshot,
  { snapshotMs = 2000, snapshotError: message }: SnapshotOptions,
): void => {
  const { kube, now, later, snapshotContents } = record;
  if (snapshot.status?.readyToUse === true || snapshot.status?.error !== undefined) return;
  if (now() - creationOf(snapshot) < snapshotMs) return later(creationOf(snapshot) + snapshotMs);
  const { persistentVolumeClaimName: claimName } = snapshot.spec.source;
  kube.edit(volumeSnapshots, snapshot.metadata, (edited) => {
    snapshotContents.set(snapshot.metadata.name, { isFilled: contentOf(record, claimName)?.isFilled === true });
    edited.status = message === undefined ? readyStatus(record, snapshot) : { readyToUse: false, error: { message } };
  });
  if (message === undefined) bind(record, snapshot);
};

const readyStatus = (record: ClusterRecord, { metadata, spec }: VolumeSnapshot) => {
  const claim = claimNamed(record, spec.source.persistentVolumeClaimName);
  const { storage: restoreSize } = claim?.spec.resources?.requests ?? {};
  const size = restoreSize === undefined ? {} : { restoreSize };
  return { readyToUse: true, boundVolumeSnapshotContentName: contentName(metadata), ...size };
};

const contentName = ({ uid }: VolumeSnapshot['metadata']): string => `content-of-${uid}`;

const bind = (record: ClusterRecord, { metadata, spec }: VolumeSnapshot): void => {
  const claim = claimNamed(record, spec.source.persistentVolumeClaimName);
  const driver = classOf(record, claim)?.provisioner ?? '';
  record.kube.seed(volumeSnapshotContents, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: { name: contentName(metadata) },
    spec: { driver, sourceVolumeMode: claim?.spec.volumeMode ?? 'Filesystem' },
  } as VolumeSnapshotContent);
};
