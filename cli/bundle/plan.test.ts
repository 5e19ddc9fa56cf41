// Decisions of a load: what of a bundle is to be done in a cluster, by which rules it must be signed, and what its crons follow there.
import { describe, expect, it } from 'vitest';
import type { BundleDocument, BundledImage, BundledObject } from '#cli/bundle/layout.ts';
import { objectsFor } from '#cli/bundle/objects.ts';
import { policiesFor } from '#cli/bundle/signatures.ts';
import { bucketOf, partBytesOf } from '#cli/bundle/to-bucket.ts';
import { type ImageStanding, stepFor } from '#cli/bundle/to-cluster.ts';
import { placeOf } from '#cli/bundle/to-registry.ts';
import { haveText } from '#cli/bundle/have.ts';
import type { GoldenImagePolicy } from '#shared/api/bullion/golden-image-policy.ts';
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';

const hex = 'a'.repeat(64);
const digest = `sha256:${'b'.repeat(64)}`;
const layer = `sha256:${'c'.repeat(64)}`;
const disk = { layer, file: 'disk/disk.qcow2', size: 10, sha256: hex };
const version: BundledImage = {
  name: 'fedora',
  digest,
  tags: ['fedora-bbb', '40'],
  from: 'docker://registry.example/fedora',
  version: 'fedora-bbb',
  dataSources: ['fedora'],
  policy: 'fedora',
  leftOut: [],
  disk,
};
const image: BundledImage = {
  name: 'jammy',
  digest,
  tags: ['latest'],
  from: 'image jammy',
  dataSources: [],
  leftOut: [],
  disk,
};
const { disk: _disk, ...unread } = version;

const aVolume = (phase: string, source: object = { upload: {} }): DataVolume => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'fedora-bbb' },
  spec: { source },
  status: { phase },
});
const aSource = (labels: Readonly<Record<string, string>> = {}): DataSource => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataSource',
  metadata: { name: 'fedora', labels },
  spec: { source: {} },
});
const anImage = (spec: object) => ({
  apiVersion: 'v1',
  kind: 'VirtualMachineImage',
  metadata: { name: 'jammy' },
  spec,
});

const standing = (over: Partial<ImageStanding>): ImageStanding => ({
  image: version,
  volume: undefined,
  filledFrom: undefined,
  golden: undefined,
  dataSources: [],
  ...over,
});

describe('a bundle in a cluster', () => {
  const upload = { is: 'upload', disk };
  const present = { is: 'present' };
  const refused = (words: string) => ({ is: 'refused', why: expect.stringContaining(words) });
  it.each<[string, Partial<ImageStanding>, readonly string[], object]>([
    ['nothing is there', {}, [], upload],
    ['its DataSource is nobody’s', { dataSources: [aSource()] }, [], upload],
    ['an earlier load was cut', { volume: aVolume('UploadReady') }, [], upload],
    ['an earlier load failed', { volume: aVolume('Failed') }, [], upload],
    ['an earlier load is complete', { volume: aVolume('Succeeded'), filledFrom: hex }, [], present],
    ['only the claim is left', { filledFrom: hex }, [], present],
    [
      'another disk has its name',
      { volume: aVolume('Succeeded'), filledFrom: 'd'.repeat(64) },
      [],
      refused('with another disk'),
    ],
    [
      'its name is imported by others',
      { volume: aVolume('ImportInProgress', { http: { url: 'x' } }) },
      [],
      refused('not filled by an upload'),
    ],
    [
      'a cron moves its DataSource',
      { dataSources: [aSource({ 'cdi.kubevirt.io/dataImportCron': 'fedora' })] },
      [],
      refused('is moved by a cron'),
    ],
    [
      'a policy moves its DataSource',
      { dataSources: [aSource({ 'bullion.dev/golden-image-policy': 'fedora' })] },
      [],
      refused('is moved by a cron or a policy'),
    ],
    [
      'its disk is left out and not there',
      { image: { ...version, leftOut: [layer] } },
      [],
      refused('leaves out the disk of fedora-bbb'),
    ],
    ['its disk is left out and there', { image: { ...version, leftOut: [layer] }, filledFrom: hex }, [], present],
    [
      'it was left out unread, and pulled here',
      { image: { ...unread, leftOut: [layer] }, filledFrom: 'd' },
      [digest],
      present,
    ],
    [
      'it was left out unread, and is unknown',
      { image: { ...unread, leftOut: [layer] }, filledFrom: 'd' },
      [],
      refused('with another disk'),
    ],
    ['an image takes uploads', { image, golden: anImage({ sourceType: 'upload' }) }, [], upload],
    [
      'an image is downloaded',
      { image, golden: anImage({ sourceType: 'download' }) },
      [],
      refused('image jammy is here already'),
    ],
    ['an image is complete', { image, golden: anImage({ sourceType: 'upload' }), filledFrom: hex }, [], present],
    [
      'an image of the name has another disk',
      { image, golden: anImage({}), filledFrom: 'd' },
      [],
      refused('with another disk'),
    ],
    [
      'only another claim has the disk',
      { image: { ...image, leftOut: [layer] } },
      [`sha256:${hex}`],
      refused('not here'),
    ],
  ])('where %s', (_, over, digests, step) => {
    expect(stepFor(standing(over), new Set(digests))).toEqual(step);
  });
});

const aPolicy = (name: string, dataSource: string): GoldenImagePolicy => ({
  apiVersion: 'bullion.dev/v1alpha1',
  kind: 'GoldenImagePolicy',
  metadata: { name },
  spec: { dataImportCrons: { names: [name] }, channels: [{ name: 'stable', dataSource }] },
});

it('is signed by the rules of policies with its name or its DataSource', () => {
  const policies = [aPolicy('fedora', 'x'), aPolicy('other', 'fedora'), aPolicy('debian', 'debian')];
  expect(policiesFor(version, policies).map(({ metadata }) => metadata.name)).toEqual(['fedora', 'other']);
  expect(policiesFor(image, policies)).toEqual([]);
});

describe('a cron of a bundle', () => {
  const place = { registry: 'docker://inside.example/golden', namespace: 'images' };
  const aCron = (spec: object): BundledObject => ({
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataImportCron',
    metadata: { name: 'fedora' },
    spec: { schedule: '@daily', managedDataSource: 'fedora', ...spec },
  });
  const documentOf = (cron: BundledObject): BundleDocument => ({
    version: 1,
    images: [{ ...version, policy: undefined }],
    objects: [cron, { apiVersion: cron.apiVersion, kind: 'DataSource', metadata: { name: 'fedora' }, spec: {} }],
  });
  const registry = (url: string, over: object = {}) => ({ source: { registry: { url, ...over } } });
  it.each<[string, object, object]>([
    ['a tag', registry('docker://quay.io/a/fedora:40'), { url: 'docker://inside.example/golden/fedora:40' }],
    ['the newest tag', registry('docker://quay.io/a/fedora'), { url: 'docker://inside.example/golden/fedora' }],
    ['a port and no tag', registry('docker://quay.io:5000/a/fedora'), { url: 'docker://inside.example/golden/fedora' }],
    [
      'a range',
      registry('docker://quay.io/a/fedora', { tags: '>=39', secretRef: 'gone', certConfigMap: 'gone' }),
      { url: 'docker://inside.example/golden/fedora', tags: '>=39' },
    ],
    [
      'a file',
      { source: { http: { url: 'https://example.org/x' } } },
      { url: 'docker://inside.example/golden/fedora' },
    ],
  ])('that follows %s follows it in the registry it was brought into', (_, spec, wanted) => {
    const [cron, ...others] = objectsFor(documentOf(aCron(spec)), place);
    expect(others).toEqual([]);
    expect(cron).toMatchObject({
      metadata: { name: 'fedora', namespace: 'images' },
      spec: { source: { registry: wanted } },
    });
    expect(cron).toHaveProperty('spec.source', { registry: wanted });
  });

  it('keeps the rest of its template, with the access that the other side names', () => {
    const template = { spec: { ...registry('docker://quay.io/a/fedora:40'), storage: { storageClassName: 'x' } } };
    const [cron] = objectsFor(documentOf(aCron({ template })), { ...place, secretRef: 'pull' });
    const source = { registry: { url: 'docker://inside.example/golden/fedora:40', secretRef: 'pull' } };
    expect(cron?.spec).toMatchObject({ template: { spec: { source, storage: { storageClassName: 'x' } } } });
  });
});

it.each([
  ['s3://bucket', { bucket: 'bucket', prefix: '' }],
  ['s3://bucket/', { bucket: 'bucket', prefix: '' }],
  ['s3://bucket/a/b/', { bucket: 'bucket', prefix: 'a/b/' }],
])('%s is a bucket', (target, place) => {
  expect(bucketOf(target)).toEqual(place);
});

it.each(['s3://', 's3://-', 's3:///x'])('%s is none', (target) => {
  expect(() => bucketOf(target)).toThrow(/is not a bucket: write s3:/);
});

it('has parts that are few enough for a store', () => {
  expect([1, 2 ** 30, 2 ** 40].map((size) => Math.ceil(size / partBytesOf(size)))).toEqual([1, 64, 9000]);
});

it.each(['oci://registry.example:5000/golden', 'docker://registry.example:5000/golden/'])(
  '%s has a repository for each image',
  (target) => {
    expect(placeOf(target, image)).toMatchObject({ host: 'registry.example:5000', repository: 'golden/jammy' });
  },
);

it.each(['oci://registry.example/golden:40', 'oci://registry.example/Golden'])('%s is refused', (target) => {
  expect(() => placeOf(target, image)).toThrow(/oci:\/\/registry\.example/);
});

it('has one text for the same digests', () => {
  expect(haveText([layer, digest, layer])).toBe(haveText([digest, layer]));
});
