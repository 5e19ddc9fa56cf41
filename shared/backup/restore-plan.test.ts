import { describe, expect, it } from 'vitest';
import { type BackupImageObject, imageTypes, readImage } from '#shared/backup/image.ts';
import type { ImageMetadata } from '#shared/backup/metadata.ts';
import { type ObservedRestore, decideRestore } from '#shared/backup/restore-plan.ts';
import { aHarvesterImage } from '#test/support/builders.ts';

const disk = 'a'.repeat(64);
const metadata: ImageMetadata = {
  version: 1,
  image: {
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    namespace: 'default',
    name: 'image-leap',
    uid: 'remote-uid',
    cluster: 'c',
  },
  backend: 'csi',
  displayName: 'leap',
  spec: { displayName: 'leap', checksum: 'sha256:11' },
  digests: { sha256: '22' },
  data: { kept: 'chunks', disk },
};
const byStorage: ImageMetadata = {
  ...metadata,
  backend: 'backingimage',
  children: { backingImage: 'vmi-1' },
  data: { kept: 'by-storage', url: 's3://b@r/?backingImage=vmi-1', checksum: 'aa' },
};

const here = (status: object, spec: object = {}) => {
  const base = aHarvesterImage({ metadata: { name: 'image-leap', namespace: 'default', uid: 'here-uid' } });
  const object = { ...base, spec: { ...base.spec, ...spec }, status: { phase: 'Imported', ...status } };
  return readImage(imageTypes[0]!, object as unknown as BackupImageObject);
};
const observed = (over: Partial<ObservedRestore> = {}): ObservedRestore => ({
  key: 'harvester/vmimages/default-image-leap/vmimage-metadata.yaml',
  targetName: 'https://store/b',
  metadata,
  isDeleted: false,
  isNamespaceLeaving: false,
  hasTable: true,
  ...over,
});

describe('the plan for an entry of a target', () => {
  it.each<[string, Partial<ObservedRestore>, object]>([
    ['is missing here', {}, { is: 'create' }],
    ['was deleted here', { isDeleted: true }, { is: 'deleted' }],
    ['is of a backend that is not served', { unfit: 'no' }, { is: 'waiting', reason: 'BackendNotServed' }],
    ['goes into a namespace that goes', { isNamespaceLeaving: true }, { reason: 'NamespaceTerminating' }],
    ['names a disk that is not there', { hasTable: false }, { is: 'waiting', reason: 'DataMissing' }],
    ['names a class that is not there', { missingClass: 'fast' }, { reason: 'StorageClassNotFound' }],
    [
      'needs a Secret',
      { missingSecret: { namespace: 'default', name: 'backup-target', holds: 'x' } },
      { reason: 'SecretMissing' },
    ],
    ['is of Longhorn, which knows nothing yet', { metadata: byStorage, storage: { is: 'absent' } }, { is: 'waiting' }],
    [
      'is of Longhorn, which is at it',
      { metadata: byStorage, storage: { is: 'unfinished', state: 'InProgress' } },
      { is: 'waiting', message: expect.stringContaining('InProgress') },
    ],
    [
      'is of Longhorn, and done',
      { metadata: byStorage, storage: { is: 'completed', checksum: 'aa' } },
      { is: 'create' },
    ],
    [
      'is of Longhorn, with another checksum',
      { metadata: byStorage, storage: { is: 'completed', checksum: 'bb' } },
      { is: 'conflict', message: expect.stringMatching(/checksum aa.*has bb/) },
    ],
    ['is here, with the same disk', { existing: here({ backup: { target: 't', disk } }) }, { is: 'present' }],
    [
      'is here, with another disk',
      { existing: here({ backup: { target: 't', disk: 'b'.repeat(64) } }) },
      { is: 'conflict', message: expect.stringMatching(/here-uid.*bbb.*remote-uid.*aaa/) },
    ],
    [
      'is here, with another digest',
      { existing: here({ digests: { sha256: '33' } }) },
      { is: 'conflict', message: expect.stringMatching(/sha256 33.*sha256 22/) },
    ],
    [
      'is here, with another checksum',
      { existing: here({}, { checksum: 'sha256:44' }) },
      { is: 'conflict', message: expect.stringMatching(/checksum sha256:44.*checksum sha256:11/) },
    ],
    ['is here, and nothing can be compared', { existing: here({}) }, { is: 'present' }],
    ['is here although it was deleted once', { existing: here({}), isDeleted: true }, { is: 'present' }],
  ])('for an entry that %s', (_, over, expected) => {
    expect(decideRestore(observed(over))).toMatchObject(expected);
  });
});
