// The csi backend: a golden volume of any CSI driver, filled by a transfer Job, with a snapshot if the driver supports it.
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import {
  kubeEvents,
  pods,
  storageClasses,
  type PersistentVolumeClaim,
  jobs,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { Backend, BackendMutator, BackendValidator, Image } from '#shared/backends/backend.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { originReaders, volumeOf } from '#shared/backends/csi/volume.ts';
import { markExported } from '#shared/backends/source-claim.ts';
import type { Plan } from '#shared/populate/actions.ts';
import { checkVolume, readChildren } from '#shared/populate/volume/check.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import { planVolume } from '#shared/populate/volume/plan.ts';
import { planRemoval } from '#shared/populate/volume/removal.ts';
import { filledState } from '#shared/populate/volume/state.ts';
import { populationOf } from '#shared/populate/population.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import { follow, jobMatters, isLeaving, isSnapshotDecided, type WatchedChild } from '#shared/populate/watched-child.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';

// The children the csi backend watches, and which of their changes can affect an image.

/** Copied by the storage from another volume, and not marked yet. */
const isCopied = (volume: PersistentVolumeClaim): boolean =>
  volume.status?.phase === 'Bound' && recordOf(volume) !== undefined && populationOf(volume) === undefined;

const watchedChildren: readonly WatchedChild[] = [
  follow(jobs, ['create', 'delete'], jobMatters),
  follow<PersistentVolumeClaim>(
    persistentVolumeClaims,
    ['create', 'patch', 'delete'],
    (volume) => volume.status?.phase === 'Lost' || isLeaving(volume) || isCopied(volume),
  ),
  follow(volumeSnapshots, ['create', 'delete'], isSnapshotDecided),
];

// Rules of the csi backend in addition to those of the image's kind.

/** Longest name of a claim or a snapshot in Kubernetes. */
const maxNameLength = 253;

/** The smallest disk: one block of a file system. */
const leastBytes = 2 ** 20;

const faultsOf = (image: Image): readonly Fault[] => {
  const faults: Fault[] = [];
  const longest = Math.max(image.childNames.volume.length, image.childNames.snapshot.length);
  if (longest > maxNameLength) {
    const most = image.ref.name.length - (longest - maxNameLength);
    faults.push({
      field: 'metadata.name',
      message: `must have at most ${most} characters, because its volume has the same name`,
    });
  }
  const bytes = image.storage.capacityBytes;
  if (bytes !== undefined && bytes < leastBytes) {
    faults.push({ field: 'spec.pvc.resources.requests.storage', message: 'must be at least 1Mi' });
  }
  if (image.source?.type === 'export-from-volume' && image.checksum !== undefined) {
    faults.push({ field: 'spec.checksum', message: 'must be empty: the content of a disk has no published checksum' });
  }
  return faults;
};

/** The location of the golden copy cannot change once it may exist. */
const storageFields = ['className', 'volumeMode', 'capacityBytes', 'snapshotClassName'] as const;

const isChanged = (before: Image, after: Image, field: (typeof storageFields)[number]): boolean =>
  before.storage[field] !== undefined && before.storage[field] !== after.storage[field];

const fieldNames = {
  className: 'spec.storageClassName',
  volumeMode: 'spec.pvc.volumeMode',
  capacityBytes: 'spec.pvc.resources.requests.storage',
  snapshotClassName: 'spec.snapshotClassName',
} as const;

const validator: BackendValidator = {
  create: faultsOf,
  update: (before, after) =>
    storageFields
      .filter((field) => isChanged(before, after, field))
      .map((field) => ({ field: fieldNames[field], message: 'cannot be changed: create a new image instead' })),
  delete: () => [],
};

const mutator: BackendMutator = { classParameters: () => undefined };

const updateVirtualSize = (image: Image, { claim }: ObservedVolume): ImageState | undefined => {
  const population = populationOf(claim);
  return image.state.inspection?.virtualSize !== undefined || population === undefined || claim === undefined
    ? undefined
    : filledState(image, claim, population);
};

/** A claim is marked before it is exported. */
const markSource = (image: Image, { origin }: ObservedVolume, plan: Plan): Plan =>
  image.source?.type === 'export-from-volume' && origin?.is === 'ready' && plan.actions.length > 0
    ? { ...plan, actions: [...markExported(origin.claim, image), ...plan.actions] }
    : plan;

export const csi: Backend<ObservedVolume> = {
  capabilities: {
    sources: ['http', 'object', 'upload', 'export-from-volume', 'clone', 's3', 'nfs'],
    passes: ['secretRef', 'certConfigMap', 'workloadIdentity'],
    copiesNearby: true,
  },
  check: (kube, image) =>
    image.deleting
      ? readChildren(kube, volumeOf(image))
      : checkVolume(kube, volumeOf(image), { origins: originReaders }),
  initialize: (image, observed, context) => markSource(image, observed, planVolume(volumeOf(image), observed, context)),
  updateVirtualSize,
  delete: (image, observed) => planRemoval(volumeOf(image), observed),
  rootDiskOf: ({ childNames, state }) => ({
    is: 'copy',
    volume: state.children?.volume ?? childNames.volume,
    snapshot: state.children?.snapshot,
  }),
  watchedChildren,
  reads: [pods, storageClasses, storageProfiles, volumeSnapshotClasses, kubeEvents, harvesterImageKind.type],
  validator,
  mutator,
};
