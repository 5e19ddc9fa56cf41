// The simulated scenarios: images of every kind and backend, the objects that wait for them, the course of their transfers, the actions of their user.
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import { virtualMachinePvcKind, virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { ImageObject } from '#shared/resources/dialect.ts';
import { aFault, aHarvesterImage, aHyperCloudImage, aSuccess } from '#test/support/builders.ts';
import type { AttemptScript, WorkMode } from '#test/support/simulation/attempts.ts';

export interface Scenario {
  readonly name: string;
  readonly attempt: (mode: WorkMode, attempt: number) => AttemptScript;
  readonly image: ImageObject;
  readonly type: ResourceType;
  /** Objects that wait for the image. */
  readonly alongside?: readonly { readonly type: ResourceType; readonly object: ImageObject }[];
  readonly snapshotError?: string;
  readonly withoutSnapshots?: boolean;
  readonly waitForConsumer?: boolean;
  /** How many transfers may run at once. Default: all. */
  readonly running?: number;
  /** Its storage is a CSI driver, and pods use the disks from the start. */
  readonly hasDriver?: boolean;
  /** The actions of the user meanwhile; the seed determines the times, while faults occur. */
  readonly user?: 'deletes' | 'deletes-and-recreates' | 'retries';
}

const success: AttemptScript = { runMs: 20_000, end: aSuccess() };
const flaky: AttemptScript = { runMs: 7_000, end: aFault() };
const fatal: AttemptScript = {
  runMs: 4_000,
  end: aFault({
    reason: 'SourceNotFound',
    message: 'the server answered 404',
    retryable: false,
    inspection: undefined,
  }),
};

const hyperCloudType = hyperCloudImageKind.type;
const harvesterType = harvesterImageKind.type;

const sized = aHyperCloudImage({
  spec: {
    source: { http: 'https://images.example/ubuntu.img' },
    pvc: { volumeMode: 'Block', resources: { requests: { storage: '3Gi' } }, storageClassName: 'local' },
  },
});

const volume = (kind: ServedKind, spec: object): { readonly type: ResourceType; readonly object: ImageObject } => ({
  type: kind.type,
  object: {
    apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
    kind: kind.type.kind,
    metadata: { namespace: 'default', name: `of-${kind.singular}` },
    spec,
  } as ImageObject,
});

/** Created from the image of every scenario, one of each form. */
const volumes = [
  volume(virtualMachineVolumeKind as unknown as ServedKind, { virtualMachineImage: { name: 'ubuntu' } }),
  volume(virtualMachinePvcKind as unknown as ServedKind, { virtualMachineImageName: 'ubuntu' }),
];

/** And exported again while the disk is created. */
const exported = [
  volumes[1]!,
  volume(volumeExportKind as unknown as ServedKind, {
    pvcName: 'of-virtualmachinepvc',
    destination: { s3: { url: 'https://exports.store.example/disk.qcow2' } },
  }),
];

const ofOneGib = { resources: { requests: { storage: '1Gi' } } };

const dataVolume = (
  name: string,
  source: object,
  size: object = ofOneGib,
): { readonly type: ResourceType; readonly object: ImageObject } => ({
  type: dataVolumeKind.type,
  object: {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: dataVolumeKind.type.kind,
    metadata: { namespace: 'default', name },
    spec: { source, storage: { storageClassName: 'local', ...size } },
  } as ImageObject,
});

/** An imported image, and one that is created from it and waits meanwhile. */
const dataVolumes = [
  dataVolume('imported', { http: { url: 'https://images.example/ubuntu.img' } }),
  dataVolume('made-from-it', { pvc: { namespace: 'default', name: 'imported' } }),
  // The size is determined by an inspection.
  dataVolume('looked-at', { http: { url: 'https://images.example/ubuntu.img' } }, {}),
];

/** Requested three times: fetched once, and cloned. */
const pinned = `docker://registry.example/disk@sha256:${'a'.repeat(64)}`;
/** Like the versions of a cron. */
const golden = (version: ReturnType<typeof dataVolume>): ReturnType<typeof dataVolume> => {
  const { object } = version;
  const labels = { 'cdi.kubevirt.io/dataImportCron': 'cron' };
  return { ...version, object: { ...object, metadata: { ...object.metadata, labels } } };
};
const sharing = ['first', 'second', 'third'].map((name) => golden(dataVolume(name, { registry: { url: pinned } })));

/** A file with a known digest, requested by an image, versions of crons and the disk of a machine: fetched once. */
const summed = `sha256:${'ab'.repeat(32)}`;
const ofFile = aHyperCloudImage({
  spec: { storageClassName: 'local', checksum: summed, source: { http: 'https://images.example/ubuntu.img' } },
});
const fileVolume = (name: string) =>
  dataVolume(name, { http: { url: `https://mirror.example/${name}.img`, checksum: summed } });
const sharingFile = [golden(fileVolume('first')), golden(fileVolume('second')), fileVolume('disk')];

/** Its user sets no backend. */
const onLonghorn = {
  type: harvesterType,
  image: aHarvesterImage({
    spec: {
      displayName: 'leap',
      sourceType: 'download',
      url: 'https://images.example/leap.qcow2',
      targetStorageClassName: 'local',
    },
  }) as ImageObject,
};

/** From the image next to it, by its own backend. */
const copyOf = (image: ImageObject) => ({
  type: harvesterType,
  object: {
    ...image,
    metadata: { namespace: 'default', name: `of-${image.metadata.name}` },
    spec: {
      backend: 'csi',
      displayName: 'copy',
      sourceType: 'clone',
      retry: 3,
      securityParameters: { sourceImageName: image.metadata.name, sourceImageNamespace: 'default' },
    },
  } as unknown as ImageObject,
});

const base = { type: hyperCloudType, image: aHyperCloudImage() as ImageObject };

const kept = aHarvesterImage();
const cdi = { type: harvesterType, image: { ...kept, spec: { ...kept.spec, backend: 'cdi' } } as ImageObject };

const copied = { type: harvesterType, image: kept as ImageObject, alongside: [copyOf(kept as ImageObject)] };

export const scenarios: readonly Scenario[] = [
  { ...base, name: 'import', attempt: () => success },
  { ...base, name: 'import-sized', image: sized as ImageObject, attempt: () => success },
  {
    ...base,
    name: 'import-harvester',
    type: harvesterType,
    image: aHarvesterImage() as ImageObject,
    attempt: () => success,
  },
  { ...copied, name: 'image-copied', attempt: () => success },
  { ...copied, name: 'image-copied-by-job', withoutSnapshots: true, attempt: () => success },
  { ...cdi, name: 'cdi', attempt: () => success },
  { ...cdi, name: 'cdi-flaky', attempt: (mode, attempt) => (mode === 'import' && attempt < 3 ? flaky : success) },
  { ...cdi, name: 'cdi-exhausted', attempt: (mode) => (mode === 'import' ? flaky : success) },
  { ...cdi, name: 'cdi-fatal', attempt: () => fatal },
  { ...cdi, name: 'cdi-deleted', user: 'deletes', attempt: () => success },
  { ...cdi, name: 'cdi-retried', user: 'retries', attempt: () => success },
  { ...base, name: 'no-snapshots', withoutSnapshots: true, attempt: () => success },
  { ...base, name: 'wait-for-consumer', waitForConsumer: true, attempt: () => success },
  { ...base, name: 'flaky', attempt: (mode, attempt) => (mode === 'import' && attempt < 3 ? flaky : success) },
  { ...base, name: 'killed', attempt: (_mode, attempt) => (attempt === 1 ? { runMs: 5000, end: 'killed' } : success) },
  { ...base, name: 'exhausted', attempt: (mode) => (mode === 'import' ? flaky : success) },
  { ...base, name: 'fatal', attempt: () => fatal },
  { ...base, name: 'snapshot-error', snapshotError: 'the pool is full', attempt: () => success },
  { ...base, name: 'stuck', attempt: () => ({ ...success, unschedulable: true }) },
  { ...base, name: 'deleted', user: 'deletes', attempt: () => success },
  { ...base, name: 'deleted-and-recreated', user: 'deletes-and-recreates', attempt: () => success },
  { ...base, name: 'retried', user: 'retries', attempt: () => success },
  { ...base, name: 'restored', alongside: volumes, attempt: () => success },
  { ...base, name: 'copied', alongside: volumes, withoutSnapshots: true, attempt: () => success },
  { ...base, name: 'data-volumes', alongside: dataVolumes, attempt: () => success },
  { ...base, name: 'data-volumes-copied', alongside: dataVolumes, withoutSnapshots: true, attempt: () => success },
  { ...base, name: 'exported', alongside: exported, attempt: () => success },
  { ...base, name: 'exported-copied', alongside: exported, withoutSnapshots: true, attempt: () => success },
  {
    ...base,
    name: 'export-killed',
    alongside: exported,
    attempt: (mode) => (mode === 'export' ? { runMs: 5000, end: 'killed' } : success),
  },
  { ...base, name: 'queued', alongside: dataVolumes, running: 1, attempt: () => success },
  { ...onLonghorn, name: 'longhorn', attempt: () => success },
  { ...onLonghorn, name: 'longhorn-flaky', attempt: (_mode, attempt) => (attempt < 3 ? flaky : success) },
  {
    ...onLonghorn,
    name: 'longhorn-killed',
    attempt: (_mode, attempt) => (attempt === 1 ? { runMs: 5000, end: 'killed' } : success),
  },
  { ...onLonghorn, name: 'longhorn-exhausted', attempt: () => flaky },
  { ...onLonghorn, name: 'longhorn-fatal', attempt: () => fatal },
  { ...onLonghorn, name: 'longhorn-stuck', attempt: () => ({ ...success, unschedulable: true }) },
  { ...onLonghorn, name: 'longhorn-deleted', user: 'deletes', attempt: () => success },
  { ...onLonghorn, name: 'longhorn-deleted-and-recreated', user: 'deletes-and-recreates', attempt: () => success },
  { ...onLonghorn, name: 'longhorn-retried', user: 'retries', attempt: () => success },
  {
    ...base,
    name: 'disks-of-pods',
    alongside: dataVolumes,
    waitForConsumer: true,
    withoutSnapshots: true,
    hasDriver: true,
    attempt: (mode, attempt) => (mode === 'import' && attempt < 2 ? flaky : success),
  },
  { ...base, name: 'clone-waits-for-consumer', alongside: volumes, waitForConsumer: true, attempt: () => success },
];

/** Which of them fetches depends on the faults, so they are not compared with a run without faults. */
export const sharedContent: readonly Scenario[] = [
  { ...base, name: 'shared-content', alongside: sharing, attempt: () => success },
  { ...base, name: 'shared-file', image: ofFile as ImageObject, alongside: sharingFile, attempt: () => success },
  { ...base, name: 'shared-content-copied', alongside: sharing, withoutSnapshots: true, attempt: () => success },
  // The disk of a machine can be retained only as a copy, which is made for volumes that wait in time: a late one fetches, and reports why.
  {
    ...base,
    name: 'shared-file-copied',
    image: ofFile as ImageObject,
    alongside: sharingFile,
    withoutSnapshots: true,
    attempt: () => success,
  },
];
