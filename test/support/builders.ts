// Objects for tests: complete and ordinary, except for the given fields.
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import {
  type CsiDriver,
  type Job,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
} from '#shared/api/foreign/core.ts';
import type { BackingImage, BackingImageCopy, CopyState } from '#shared/api/foreign/longhorn.ts';
import type { VolumeSnapshot, VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import type { HarvesterImage } from '#shared/api/harvester/image.ts';
import type { HyperCloudImage } from '#shared/api/hypercloud/image.ts';
import { finalizers } from '#shared/api/names.ts';
import { childMetadata } from '#shared/api/object.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import type { JobSource } from '#shared/populate/source.ts';
import { buildBackingImage } from '#shared/backends/backingimage/manifests.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { type PopulateSettings, defaultSettings } from '#shared/populate/settings.ts';
import { buildVolume, type Population } from '#shared/populate/population.ts';
import type { LookedAtFile } from '#shared/transfer/file-look.ts';
import type { TransferReport } from '#shared/transfer/report.ts';
import type { Image } from '#shared/backends/backend.ts';

export const testTime = Date.parse('2026-01-02T03:04:05Z');

export const testSettings: PopulateSettings = { ...defaultSettings, attemptSeconds: 3600, childSeconds: 600 };

/** The inspection of a file that every backend supports. */
export const aGoodFile: LookedAtFile = {
  is: 'found',
  inspection: { format: 'qcow2', compression: 'none', size: 2 ** 20, virtualSize: 2 ** 30 },
};

export const imageRef = {
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineImage',
  namespace: 'default',
  name: 'ubuntu',
  uid: '11111111-1111-4111-8111-111111111111',
} as const;

/** An admitted image that was not reconciled yet. `state` is merged into the initial state. */
export const anImage = (
  over: Partial<Omit<Image, 'state'>> & { readonly state?: Partial<ImageState> } = {},
): Image => ({
  ref: imageRef,
  generation: 1,
  deleting: false,
  finalizers: [finalizers.image],
  backend: 'csi',
  displayName: 'ubuntu',
  faults: [],
  source: { type: 'http', url: 'https://images.example/ubuntu.img' },
  checksum: undefined,
  storage: { className: 'local', volumeMode: 'Block', capacityBytes: 2 ** 30 },
  childNames: { volume: 'ubuntu-image-pvc', snapshot: 'ubuntu-image-snapshot' },
  volumeMarks: { filling: { imported: 'no' }, filled: { imported: 'yes' } },
  retries: 3,
  retryToken: undefined,
  ...over,
  state: { ...initialState, ...over.state },
});

export const aHyperCloudImage = (over: Partial<HyperCloudImage> = {}): HyperCloudImage => ({
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineImage',
  spec: {
    storageClassName: 'local',
    source: { http: 'https://images.example/ubuntu.img' },
  },
  ...over,
  metadata: { namespace: 'default', name: 'ubuntu', ...over.metadata },
});

export const aHarvesterImage = (over: Partial<HarvesterImage> = {}): HarvesterImage => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineImage',
  spec: {
    backend: 'csi',
    displayName: 'leap',
    sourceType: 'download',
    url: 'https://images.example/leap.qcow2',
    retry: 3,
    targetStorageClassName: 'local',
  },
  ...over,
  metadata: { namespace: 'default', name: 'image-leap', ...over.metadata },
});

export const aStorageClass = (name = 'local', over: Partial<StorageClass> = {}): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name },
  provisioner: 'local.bullion.dev',
  volumeBindingMode: 'Immediate',
  ...over,
});

/** Of the class above. */
export const aCsiDriver = (name = aStorageClass().provisioner): CsiDriver => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name },
  spec: {},
});

/** The profile of a class, by the name of the class. */
export const aStorageProfile = (
  over: Partial<StorageProfile> & { readonly annotations?: Readonly<Record<string, string>> } = {},
): StorageProfile => {
  const { annotations, ...rest } = over;
  return {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'StorageProfile',
    metadata: { name: 'local', ...(annotations === undefined ? {} : { annotations }) },
    ...rest,
  };
};

export const aSnapshotClass = (
  name = 'local-snapshots',
  over: Partial<VolumeSnapshotClass> = {},
): VolumeSnapshotClass => ({
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshotClass',
  metadata: { name },
  driver: 'local.bullion.dev',
  deletionPolicy: 'Delete',
  ...over,
});

/** The golden volume of `anImage`, with a UID as if it were stored. */
export const aVolume = (over: Partial<PersistentVolumeClaim> = {}, image = anImage()): PersistentVolumeClaim => {
  const built = buildVolume({
    owner: image.ref,
    name: image.childNames.volume,
    storageClassName: 'local',
    volumeMode: 'Block',
    accessModes: ['ReadWriteOnce'],
    bytes: 2 ** 30,
    annotations: image.volumeMarks.filling,
  });
  return { ...built, ...over, metadata: { ...built.metadata, uid: 'volume-uid', ...over.metadata } };
};

/** A transfer Job of `anImage`. */
export const aJob = (mode: 'inspect' | 'import', status: Job['status'] = {}, image = anImage()): Job => {
  const target = { claimName: image.childNames.volume, volumeMode: 'Block', capacityBytes: 2 ** 30 } as const;
  const source = image.source as JobSource;
  const request = { mode, owner: image.ref, source, retries: image.retries };
  const built = buildTransferJob(mode === 'import' ? { ...request, target } : request, testSettings);
  const metadata = { ...built.metadata, uid: `${mode}-job-uid`, creationTimestamp: '2026-01-02T03:00:00Z' };
  return { ...built, metadata, status };
};

export const aSnapshot = (status: VolumeSnapshot['status'] = {}, image = anImage()): VolumeSnapshot => ({
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshot',
  metadata: { ...childMetadata(image.ref, 'snapshot', image.childNames.snapshot), uid: 'snapshot-uid' },
  spec: { volumeSnapshotClassName: 'local-snapshots', source: { persistentVolumeClaimName: image.childNames.volume } },
  status,
});

type PodPhase = NonNullable<Pod['status']>['phase'];

/** One attempt of a Job. */
export const aPod = (
  job: Job,
  suffix: string,
  phase: PodPhase,
  over: {
    readonly exitCode?: number;
    readonly report?: TransferReport;
    readonly finishedAt?: string;
    readonly reason?: string;
  } = {},
): Pod => {
  const terminated = {
    exitCode: over.exitCode ?? 0,
    ...(over.reason === undefined ? {} : { reason: over.reason }),
    ...(over.report === undefined ? {} : { message: JSON.stringify(over.report) }),
    finishedAt: over.finishedAt ?? '2026-01-02T03:04:00Z',
  };
  const isOver = phase === 'Failed' || phase === 'Succeeded';
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${job.metadata.name}-${suffix}`,
      namespace: job.metadata.namespace ?? 'default',
      uid: `pod-${suffix}`,
      creationTimestamp: '2026-01-02T03:01:00Z',
      labels: job.metadata.labels ?? {},
      ownerReferences: [
        { apiVersion: 'batch/v1', kind: 'Job', name: job.metadata.name, uid: job.metadata.uid!, controller: true },
      ],
    },
    spec: job.spec.template.spec,
    status: {
      phase: phase ?? 'Pending',
      ...(isOver ? { containerStatuses: [{ name: 'transfer', state: { terminated } }] } : {}),
      ...(phase === 'Running' ? { containerStatuses: [{ name: 'transfer', state: { running: {} } }] } : {}),
    },
  };
};

export const aSuccess = (over: Partial<Extract<TransferReport, { outcome: 'succeeded' }>> = {}): TransferReport => ({
  outcome: 'succeeded',
  inspection: { format: 'qcow2', compression: 'none', size: 1000, virtualSize: 2 ** 30 },
  digests: { sha256: 'ab'.repeat(32) },
  receivedBytes: 1000,
  writtenBytes: 900,
  seconds: 3,
  ...over,
});

export const aFault = (over: Partial<Extract<TransferReport, { outcome: 'failed' }>> = {}): TransferReport => ({
  outcome: 'failed',
  reason: 'SourceUnavailable',
  message: 'the server answered 503',
  retryable: true,
  inspection: { format: 'qcow2', compression: 'none', size: 1000, virtualSize: 2 ** 30 },
  receivedBytes: 0,
  ...over,
});

export const aPopulation: Population = {
  inspection: { format: 'qcow2', compression: 'none', size: 1000, virtualSize: 2 ** 30 },
  digests: { sha256: 'ab'.repeat(32) },
};

/** The backing image of `anImage` on the `backingimage` backend, with copies in these states. */
export const aBackingImage = (
  copies: readonly (BackingImageCopy & { readonly state: CopyState })[] = [],
  over: Partial<BackingImage> = {},
): BackingImage => {
  const built = buildBackingImage(
    anImage(),
    { sourceType: 'download', parameters: { url: 'https://images.example/ubuntu.img' } },
    { attempt: 1, classParameters: { numberOfReplicas: '3' } },
  );
  return {
    ...built,
    status: {
      diskFileStatusMap: Object.fromEntries(copies.map((copy, index) => [`disk-${index}`, copy])),
      ...(copies.some(({ state }) => state === 'ready') ? { size: 1000, virtualSize: 2 ** 30 } : {}),
    },
    ...over,
    metadata: {
      ...built.metadata,
      uid: 'backing-image-uid',
      resourceVersion: '1',
      creationTimestamp: '2026-01-02T03:00:00Z',
      ...over.metadata,
    },
  };
};
