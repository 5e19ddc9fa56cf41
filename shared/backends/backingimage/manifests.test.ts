// The objects of an image in Longhorn: the backing image and the class of its disks, field by field as Harvester and its tools expect them.
import { describe, expect, it } from 'vitest';
import { buildBackingImage, buildStorageClass } from '#shared/backends/backingimage/manifests.ts';
import { anImage, imageRef } from '#test/support/builders.ts';

const { uid } = imageRef;
const parameters = { numberOfReplicas: '2', migratable: 'true' };
const image = (over: Parameters<typeof anImage>[0] = {}) => anImage({ backend: 'backingimage', ...over });
const clone = (operation?: 'encrypt' | 'decrypt') =>
  image({ source: { type: 'clone', namespace: 'default', imageName: 'source', operation } });

describe('the backing image', () => {
  const hex = 'ab'.repeat(64);
  const built = buildBackingImage(
    image({ checksum: { algorithm: 'sha512', hex } }),
    { sourceType: 'download', parameters: { url: 'https://images.example/a' } },
    { attempt: 2, classParameters: parameters },
  );

  it('is in the namespace of Longhorn, and refers to its image', () => {
    expect(built.metadata).toMatchObject({
      name: `vmi-${uid}`,
      namespace: 'longhorn-system',
      annotations: { 'harvesterhci.io/imageId': 'default/ubuntu' },
    });
    // Its owner is in another namespace.
    expect(built.metadata.ownerReferences).toBeUndefined();
  });

  it('contains its source, its checksum and the number of copies', () => {
    expect(built.spec).toEqual({
      sourceType: 'download',
      sourceParameters: { url: 'https://images.example/a' },
      checksum: hex,
      minNumberOfCopies: 2,
    });
  });
});

describe('the class', () => {
  it.each([
    ['a download', image(), {}],
    ['a copy', clone(), {}],
    ['a decrypted copy', clone('decrypt'), {}],
    ['an encrypted copy', clone('encrypt'), { backingImageDataSourceType: 'clone' }],
  ])('of %s creates disks from its backing image', (_what, of, more) => {
    expect(buildStorageClass(of, `vmi-${uid}`, parameters)).toMatchObject({
      metadata: { name: `lh-${uid}` },
      provisioner: 'driver.longhorn.io',
      reclaimPolicy: 'Delete',
      allowVolumeExpansion: true,
      volumeBindingMode: 'Immediate',
    });
    expect(buildStorageClass(of, `vmi-${uid}`, parameters).parameters).toEqual({
      ...parameters,
      backingImage: `vmi-${uid}`,
      ...more,
    });
  });
});
