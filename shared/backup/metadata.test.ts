import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ImageMetadata,
  parseMetadata,
  parseReleased,
  isSameMetadata,
  serializeMetadata,
} from '#shared/backup/metadata.ts';
import { classify, metadataKeys, tombstoneKey } from '#shared/backup/place.ts';

const metadata: ImageMetadata = {
  version: 1,
  image: {
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    namespace: 'default',
    name: 'leap',
    uid: 'u-1',
    cluster: 'c-1',
  },
  backend: 'csi',
  displayName: 'Leap',
  spec: { displayName: 'Leap', sourceType: 'download', url: 'https://x/leap.qcow2', retry: 3 },
  data: { kept: 'chunks', disk: 'a'.repeat(64) },
};

/** Keys of labels start and end with a letter or a digit, so `__proto__`, which JSON cannot safely set in an object, is not one. */
const labelsLike = fc.dictionary(
  fc.string().filter((key) => key !== '__proto__'),
  fc.string(),
);

describe('metadata of an image', () => {
  it('is the same text for the same image, whatever the order of its fields', () => {
    const turned = Object.fromEntries(Object.entries(metadata).toReversed()) as unknown as ImageMetadata;
    expect(serializeMetadata(turned).toString()).toBe(serializeMetadata(metadata).toString());
    expect(parseMetadata(serializeMetadata(metadata))).toEqual({ value: metadata });
  });

  it('preserves any text', () => {
    fc.assert(
      fc.property(fc.string(), labelsLike, (displayName, labels) => {
        const given = { ...metadata, displayName, labels };
        expect(parseMetadata(serializeMetadata(given))).toEqual({ value: given });
      }),
    );
  });

  it('is never read from a truncated file as something else', () => {
    const whole = serializeMetadata(metadata);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: whole.length - 1 }), (length) => {
        const parsed = parseMetadata(whole.subarray(0, length));
        // What is cut off behind the last field that is required may still be read.
        expect('value' in parsed ? parsed.value.data : metadata.data).toEqual(metadata.data);
      }),
    );
    expect(parseMetadata(whole.subarray(0, 50))).toHaveProperty('problem');
  });

  it('is not read from invalid data', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(parseMetadata(Buffer.from(bytes))).toHaveProperty('problem');
        expect(parseReleased(Buffer.from(bytes))).toHaveProperty('problem');
      }),
    );
  });

  it('is recognized as metadata of a later release', () => {
    expect(parseMetadata(Buffer.from('version: 7'))).toMatchObject({
      isLater: true,
      problem: expect.stringContaining('version 7'),
    });
  });

  it('is the same in another cluster, and for the image that was restored from it', () => {
    const restored: ImageMetadata = {
      ...metadata,
      image: { ...metadata.image, uid: 'u-2', cluster: 'c-2' },
      spec: { displayName: 'Leap', sourceType: 'restore', url: 's3://b@r/k', retry: 3 },
    };
    expect(isSameMetadata(metadata, restored)).toBe(true);
    expect(isSameMetadata(metadata, { ...restored, displayName: 'Other' })).toBe(false);
  });

  it('of Harvester must contain the name of its backing image', () => {
    const released = { name: 'x', namespace: '', displayName: 'X', url: 's3://b@r/' };
    expect(parseReleased(Buffer.from(JSON.stringify(released)))).toMatchObject({
      problem: expect.stringContaining('backingImage'),
    });
    const url = 's3://b@r/?backingImage=vmi-1';
    expect(parseReleased(Buffer.from(JSON.stringify({ ...released, url })))).toMatchObject({
      value: { image: { namespace: 'default', name: 'x' }, data: { kept: 'by-storage', url } },
    });
  });
});

describe('places in a target', () => {
  const of = (namespace: string, name: string, cluster = 'c', kind = 'VirtualMachineImage') => ({
    apiVersion: 'harvesterhci.io/v1beta1',
    kind,
    namespace,
    name,
    cluster,
  });

  it('are those of the design, and differ where they would collide', () => {
    expect(metadataKeys(of('a-b', 'c'))[0]).toBe('harvester/vmimages/a-b-c/vmimage-metadata.yaml');
    expect(metadataKeys(of('a', 'b-c'))[0]).toBe('harvester/vmimages/a-b-c/vmimage-metadata.yaml');
    const last = [of('a-b', 'c'), of('a', 'b-c'), of('a', 'b-c', 'd')].map((one) => metadataKeys(one).at(-1));
    expect(new Set(last).size).toBe(3);
    const hyperCloud = { ...of('a', 'b'), apiVersion: 'hypercloud.tmaxanc.com/v1alpha1' };
    expect(metadataKeys(hyperCloud)[1]).not.toBe(metadataKeys(of('a', 'b'))[1]);
  });

  it('are parsed again', () => {
    for (const key of metadataKeys(of('a', 'b'))) expect(classify(key).is).toBe('metadata');
    expect(classify(tombstoneKey(of('a', 'b'))).is).toBe('tombstone');
    expect(classify('harvester/vmimages/default/image-1.cfg').is).toBe('released');
    expect(classify('harvester/vmimages/a/b/c').is).toBe('other');
  });
});
