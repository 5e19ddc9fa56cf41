// What the csi backend asks of an image beyond its kind's rules. Called by admission.
import type { BackendMutator, BackendValidator } from '#shared/backends/backend.ts';
import type { Image } from '#shared/backends/image.ts';
import type { Fault } from '#shared/runtime/errors.ts';

/** Longest name Kubernetes takes for a claim or a snapshot. */
const maxNameLength = 253;

/** The least a disk can be: one block of a file system. */
const leastBytes = 2 ** 20;

const faultsOf = (image: Image): readonly Fault[] => {
  const faults: Fault[] = [];
  const longest = Math.max(image.childNames.volume.length, image.childNames.snapshot.length);
  if (longest > maxNameLength) {
    const most = image.ref.name.length - (longest - maxNameLength);
    faults.push({
      field: 'metadata.name',
      message: `may have ${most} characters at most, so that its volume can be named after it`,
    });
  }
  const bytes = image.storage.capacityBytes;
  if (bytes !== undefined && bytes < leastBytes) {
    faults.push({ field: 'spec.pvc.resources.requests.storage', message: 'must be at least 1Mi' });
  }
  if (image.source?.type === 'export-from-volume' && image.checksum !== undefined) {
    faults.push({ field: 'spec.checksum', message: 'must be empty: what a disk holds was published by nobody' });
  }
  return faults;
};

/** Where the golden copy lies cannot change once it may exist. */
const storageFields = ['className', 'volumeMode', 'capacityBytes', 'snapshotClassName'] as const;

const isChanged = (before: Image, after: Image, field: (typeof storageFields)[number]): boolean =>
  before.storage[field] !== undefined && before.storage[field] !== after.storage[field];

const fieldNames = {
  className: 'spec.storageClassName',
  volumeMode: 'spec.pvc.volumeMode',
  capacityBytes: 'spec.pvc.resources.requests.storage',
  snapshotClassName: 'spec.snapshotClassName',
} as const;

export const validator: BackendValidator = {
  create: faultsOf,
  update: (before, after) =>
    storageFields
      .filter((field) => isChanged(before, after, field))
      .map((field) => ({ field: fieldNames[field], message: 'cannot be changed: create a new image instead' })),
  delete: () => [],
};

export const mutator: BackendMutator = { classParameters: () => undefined };
