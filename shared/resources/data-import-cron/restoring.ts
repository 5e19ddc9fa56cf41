// Makes claim, data volume and snapshot of a deleted version anew, from the storage that outlived them. Pure; called by undelete.ts.
import { cdiAnnotations, cdiGroup } from '#shared/api/cdi/names.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/api/foreign/core.ts';
import { type VolumeSnapshotContent, volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { labels } from '#shared/api/names.ts';
import type { ObjectMeta } from '#shared/api/object.ts';
import { type Action, create, ensure, patch, remove } from '#shared/populate/actions.ts';
import type { CronResource, ObservedCron, ObservedVersion } from '#shared/resources/data-import-cron/cron.ts';
import { handleOf, keptMetadata } from '#shared/resources/data-import-cron/kept.ts';
import type { KeptRecord, KeptStorage } from '#shared/resources/data-import-cron/storage.ts';

/** A data volume that is brought back, and has not imported anything. */
export const isBroughtBack = ({ dataVolume }: ObservedVersion): boolean =>
  dataVolume?.metadata.annotations?.[prePopulated] !== undefined;

const prePopulated = `${cdiGroup}/storage.prePopulated`;

/** Two contents stand for one snapshot. */
export const isShared = (storage: KeptStorage, { storage: { kept } }: ObservedCron): boolean =>
  handleOf(storage) !== undefined && kept.some((other) => other !== storage && handleOf(other) === handleOf(storage));

const metadataOf = (
  { namespace }: CronResource,
  { version, made }: KeptRecord,
  from: KeptRecord['made'],
  now: number,
): ObjectMeta => ({
  namespace,
  name: version,
  ...(from.labels && { labels: from.labels }),
  annotations: {
    ...from.annotations,
    // As if it had been used now, so that it is not collected at once.
    [cdiAnnotations.lastUseTime]: new Date(now).toISOString(),
    ...(from === made ? {} : { [prePopulated]: version }),
  },
});

/** The claim as it was, of the data volume that is there now. */
const claimOf = (
  cron: CronResource,
  storage: KeptStorage,
  owner: DataVolume | undefined,
  now: number,
): PersistentVolumeClaim => {
  const { record, object } = storage;
  const metadata = metadataOf(cron, record, record.made, now);
  const uid = owner?.metadata.uid ?? '';
  const created = `${cdiGroup}/createdForDataVolume`;
  const owned = owner === undefined ? {} : { ownerReferences: [ownerReference(owner)] };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...(owner === undefined ? {} : { [labels.ownerUid]: uid }) },
      annotations: { ...metadata.annotations, ...(owner === undefined ? {} : { [created]: uid }) },
      ...owned,
    },
    spec: { ...record.made.spec, volumeName: object.metadata.name },
  };
};

const ownerReference = ({ apiVersion, kind, metadata: { name, uid = '' } }: DataVolume) => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
});

/** First the data volume, which waits for its claim; then the claim, to which the volume is promised. */
const restoreVolume = (cron: CronResource, { versions }: ObservedCron, storage: KeptStorage, now: number) => {
  const { record } = storage;
  const { dataVolume, volume } = versions.get(record.version) ?? {};
  if (volume !== undefined) return [];
  if (record.import !== undefined && dataVolume === undefined) {
    const { import: from } = record;
    const metadata = metadataOf(cron, record, from, now);
    const object = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', metadata, spec: from.spec };
    return [create(dataVolumes, object as DataVolume)];
  }
  const bound = storage.object as PersistentVolume;
  const promise =
    bound.spec.claimRef?.uid === undefined
      ? []
      : [patch(persistentVolumes, bound, { spec: { claimRef: { uid: null, resourceVersion: null } } })];
  return [...promise, create(persistentVolumeClaims, claimOf(cron, storage, dataVolume, now))];
};

/** A content is bound once: a second one stands for the same snapshot, and the first goes once that is in use. */
const restoreSnapshot = (cron: CronResource, observed: ObservedCron, storage: KeptStorage, now: number) => {
  const { record, object } = storage;
  const { versions } = observed;
  const shared = isShared(storage, observed);
  const { spec, metadata } = object as VolumeSnapshotContent;
  const isPromised = spec.volumeSnapshotRef?.uid === undefined;
  if (versions.get(record.version)?.snapshot !== undefined || (isPromised && shared)) return [];
  const name = `restored-${metadata.uid ?? ''}`;
  const handle = handleOf(storage);
  if (handle === undefined) return [];
  const { deleted: _, ...rest } = record;
  const content = {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { name, ...keptMetadata(cron, name, rest) },
    spec: {
      deletionPolicy: 'Retain',
      driver: spec.driver,
      source: { snapshotHandle: handle },
      ...(spec.sourceVolumeMode === undefined ? {} : { sourceVolumeMode: spec.sourceVolumeMode }),
      ...(spec.volumeSnapshotClassName === undefined ? {} : { volumeSnapshotClassName: spec.volumeSnapshotClassName }),
      volumeSnapshotRef: { namespace: cron.namespace, name: record.version },
    },
  } as VolumeSnapshotContent;
  const snapshot = {
    apiVersion: object.apiVersion,
    kind: volumeSnapshots.kind,
    metadata: metadataOf(cron, record, record.made, now),
    spec: { ...record.made.spec, source: { volumeSnapshotContentName: name } },
  };
  return [ensure(volumeSnapshotContents, content), create(volumeSnapshots, snapshot)];
};

export const restore = (
  cron: CronResource,
  observed: ObservedCron,
  storage: KeptStorage,
  now: number,
): readonly Action[] => {
  const version = observed.versions.get(storage.record.version) ?? {};
  const { dataVolume } = version;
  // What is being imported under that name holds nothing yet.
  if (dataVolume !== undefined && !isBroughtBack(version)) return remove(dataVolumes, dataVolume);
  if (dataVolume?.metadata.deletionTimestamp !== undefined) return [];
  return storage.form === 'volume'
    ? restoreVolume(cron, observed, storage, now)
    : restoreSnapshot(cron, observed, storage, now);
};
