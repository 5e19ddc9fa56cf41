import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createApp } from './app.ts';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { NotFound, Unavailable } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import {
  type Asked,
  type Draft,
  aHarvesterImage,
  aHyperCloudImage,
  ask,
  clusterOf,
  patched,
  withAccess,
} from '#test/support/admission.ts';

const validate = (asked: Asked, kube: KubeClient = clusterOf()) =>
  ask(createApp({ kube, log: silentLogger }), '/validate', asked);

/** A rejection: the field of every cause, and a part of each message. */
interface Denial {
  readonly code: number;
  readonly causes: Readonly<Record<string, string>>;
}

const denialOf = async (asked: Asked, kube?: KubeClient): Promise<Denial | 'allowed'> => {
  const { allowed, status } = await validate(asked, kube);
  if (allowed || status === undefined) return 'allowed';
  const causes = status.details?.causes?.map(({ field, message }) => [field, message] as const) ?? [];
  return { code: status.code, causes: Object.fromEntries(causes) };
};

const invalid = (field: string, message: string): unknown => ({
  code: 422,
  causes: expect.objectContaining({ [field]: expect.stringContaining(message) }),
});

const sha256 = 'a1'.repeat(32);
const sha512 = 'b2'.repeat(64);
const objectStore = { bucketName: 'vmimage', objectName: 'disk.img' };
const pvc = { volumeMode: 'Block', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '3Gi' } } };

/** Rule, an accepted object, a rejected one, and the field and message of the rejection. */
type Row = readonly [rule: string, allowed: Draft, denied: Draft, fault: readonly [field: string, words: string]];

describe('creating a HyperCloud image', () => {
  const image = aHyperCloudImage;
  const rows: readonly Row[] = [
    [
      'one source',
      image(),
      image({ source: { http: 'https://a/b', objectStore } }),
      ['spec.source', 'must have exactly one of'],
    ],
    ['a source', image(), image({ source: {} }), ['spec.source', 'and has none']],
    ['a URL', image(), image({ source: { http: 'images.example/disk' } }), ['spec.source.http', 'is not a valid URL']],
    [
      'a scheme',
      image({ source: { http: 'http://a/b' } }),
      image({ source: { http: 'ftp://a/b' } }),
      ['spec.source.http', 'only http and https'],
    ],
    [
      'no credentials',
      image(),
      image({ source: { http: 'https://u:p@a/b' } }),
      ['spec.source.http', 'user name or password'],
    ],
    [
      'a bucket',
      image({ source: { objectStore } }),
      image({ source: { objectStore: { ...objectStore, bucketName: 'VM_Images' } } }),
      ['spec.source.objectStore.bucketName', 'is not a valid bucket name'],
    ],
    [
      'an object',
      image({ source: { objectStore: { ...objectStore, objectName: 'ä/../ ?' } } }),
      image({ source: { objectStore: { ...objectStore, objectName: '' } } }),
      ['spec.source.objectStore.objectName', 'must have 1 to 1024 bytes'],
    ],
    [
      'no host path',
      image(),
      image({ source: { hostPath: { path: '/x', nodeName: 'n' } } }),
      ['spec.source.hostPath', 'is not supported'],
    ],
    [
      'a checksum',
      image({ checksum: ` SHA256:${sha256} ` }),
      image({ checksum: sha256 }),
      ['spec.checksum', 'write sha256:<hex>'],
    ],
    [
      'its length',
      image({ checksum: `sha256:${sha256}` }),
      image({ checksum: `sha512:${sha256}` }),
      ['spec.checksum', 'a sha512 digest has 128'],
    ],
    [
      'its alphabet',
      image({ checksum: `sha512:${sha512}` }),
      image({ checksum: `sha256:z${sha256.slice(1)}` }),
      ['spec.checksum', '0-9 and a-f'],
    ],
    [
      'a storage request',
      image({ pvc }),
      image({ pvc: { volumeMode: 'Block' } }),
      ['spec.pvc.resources.requests.storage', 'is missing'],
    ],
    [
      'a size',
      image({ pvc }),
      image({ pvc: { resources: { requests: { storage: 'big' } } } }),
      ['spec.pvc.resources.requests.storage', 'is not a valid quantity'],
    ],
    [
      'one storage class',
      image({ pvc: { ...pvc, storageClassName: 'a' }, storageClassName: 'a' }),
      image({ pvc: { ...pvc, storageClassName: 'a' }, storageClassName: 'b' }),
      ['spec.storageClassName', 'differs from spec.pvc'],
    ],
    [
      'a mode to write in',
      image({ pvc }),
      image({ pvc: { ...pvc, accessModes: ['ReadOnlyMany'] } }),
      ['spec.pvc.accessModes', 'writable mode'],
    ],
    [
      'a volume of its own',
      image({ pvc }),
      image({ pvc: { ...pvc, volumeName: 'pv-1' } }),
      ['spec.pvc.volumeName', 'must not be set'],
    ],
    [
      'an empty volume',
      image({ pvc }),
      image({ pvc: { ...pvc, dataSource: { kind: 'PersistentVolumeClaim', name: 'x' } } }),
      ['spec.pvc.dataSource', 'must not be set'],
    ],
    [
      'no volume that is chosen',
      image({ pvc }),
      image({ pvc: { ...pvc, selector: { matchLabels: { a: 'b' } } } }),
      ['spec.pvc.selector', 'must not be set'],
    ],
    ['its shape', image(), { ...image(), spec: { source: { http: 5 } } }, ['spec.source.http', 'expected string']],
    [
      'a name that leaves room for its volume',
      image(),
      image({}, { name: 'x'.repeat(250) }),
      ['metadata.name', 'at most 238 characters'],
    ],
  ];
  it.each(rows)('requires %s', async (_rule, allowed, denied, fault) => {
    expect(await denialOf({ object: allowed })).toBe('allowed');
    expect(await denialOf({ object: denied })).toEqual(invalid(...fault));
  });

  it('accepts a file system as well as a block device, unlike the original', async () => {
    expect(await denialOf({ object: image({ pvc: { ...pvc, volumeMode: 'Filesystem' } }) })).toBe('allowed');
  });

  it('accepts a generated name', async () => {
    const object = { ...image(), metadata: { generateName: 'img-', namespace: 'default' } };
    expect(await denialOf({ object })).toBe('allowed');
  });

  it('reports every error at once, as causes of one Status', async () => {
    const object = image({ source: { http: 'ftp://a/b' }, checksum: 'x', pvc: { accessModes: ['ReadOnlyMany'] } });
    const { status } = await validate({ object });
    expect(status).toMatchObject({
      code: 422,
      reason: 'Invalid',
      details: { name: 'ubuntu', group: 'hypercloud.tmaxanc.com' },
    });
    expect(status?.details?.causes?.map(({ field }) => field).toSorted()).toEqual([
      'spec.checksum',
      'spec.pvc.accessModes',
      'spec.pvc.resources.requests.storage',
      'spec.source.http',
    ]);
  });
});

describe('creating a Harvester image', () => {
  const image = aHarvesterImage;
  const annotated = (name: string) => ({ annotations: { 'harvesterhci.io/storageClassName': name } });
  const rows: readonly Row[] = [
    [
      'one storage class (harvester/one-storage-class)',
      image({ targetStorageClassName: 'a' }, annotated('a')),
      image({ targetStorageClassName: 'a' }, annotated('b')),
      ['spec.targetStorageClassName', 'differs from metadata.annotations[harvesterhci.io/storageClassName]'],
    ],
    [
      'a URL to download (harvester/url-given)',
      image(),
      image({ url: undefined }),
      ['spec.url', 'is required when sourceType is "download"'],
    ],
    [
      'a URL that is not empty (harvester/url-given)',
      image(),
      image({ url: '' }),
      ['spec.url', 'is required when sourceType is "download"'],
    ],
    ['a URL that is one (harvester/url-valid)', image(), image({ url: 'nowhere' }), ['spec.url', 'is not a valid URL']],
    [
      'a checksum with its algorithm',
      image({ checksum: `md5:${sha256.slice(0, 32)}` }),
      image({ checksum: 'crc32:00' }),
      ['spec.checksum', 'is not supported'],
    ],
    [
      'a bare checksum of SHA-512',
      image({ checksum: ` ${sha512.toUpperCase()}` }),
      image({ checksum: sha256 }),
      ['spec.checksum', 'a sha512 digest has 128'],
    ],
    ['a known backend', image(), image({ backend: 'tape' }), ['spec.backend', 'expected one of']],
    [
      'a display name',
      image({ displayName: 'Debian 12 (bookworm), 日本' }),
      image({ displayName: '' }),
      ['spec.displayName', '>=1'],
    ],
    ['retries in bounds', image({ retry: 10 }), image({ retry: 11 }), ['spec.retry', '<=10']],
  ];
  it.each(rows)('requires %s', async (_rule, allowed, denied, fault) => {
    expect(await denialOf({ object: allowed })).toBe('allowed');
    expect(await denialOf({ object: denied })).toEqual(invalid(...fault));
  });

  const nearby = { sourceImageName: 'image-b', sourceImageNamespace: 'default' };
  it.each([
    ['restore', { url: 's3://backups@region/?backingImage=vmi-1' }, 'cannot take a restore source'],
    [
      'clone',
      { securityParameters: { ...nearby, sourceImageNamespace: 'elsewhere' } },
      'copies within a namespace: create the image in namespace elsewhere',
    ],
    [
      'clone',
      { securityParameters: { ...nearby, cryptoOperation: 'encrypt' } },
      'makes plain copies and cannot encrypt',
    ],
  ])(
    'rejects sourceType %s when the backend does not support it, and names the supported ones',
    async (sourceType, rest, said) => {
      const object = image({ sourceType, url: undefined, ...rest });
      const kube = withAccess(clusterOf(), () => true);
      const filled = await ask(createMutate({ kube, log: silentLogger }), '/mutate', { object });
      expect(await denialOf({ object: patched(object, filled) }, kube)).toEqual(invalid('spec.sourceType', said));
    },
  );

  it.each([
    [
      'harvester/source-image-given',
      'clone',
      ['spec.securityParameters.sourceImageName', 'spec.securityParameters.sourceImageNamespace'],
    ],
    ['harvester/claim-given', 'export-from-volume', ['spec.pvcNamespace', 'spec.pvcName']],
  ])('requires the fields of its source (%s)', async (_rule, sourceType, fields) => {
    const denial = await denialOf({ object: image({ sourceType, url: undefined }) });
    expect(Object.keys((denial as { readonly causes: object }).causes)).toEqual(fields);
  });

  it('rejects a URL with a source that does not use one (harvester/no-url)', async () => {
    expect(await denialOf({ object: image({ sourceType: 'upload' }) })).toMatchObject({
      causes: { 'spec.url': 'must be empty when sourceType is "upload"' },
    });
  });

  it.each(['backingimage', undefined])(
    'says what to set when Longhorn is not installed (backend: %s)',
    async (backend) => {
      const object = image({ backend });
      expect(await denialOf({ object })).toBe('allowed');
      const bare = clusterOf();
      const list: KubeClient['list'] = (type, options) =>
        type.group === 'longhorn.io' ? Promise.reject(new NotFound('no such kind')) : bare.list(type, options);
      expect(await denialOf({ object }, { ...bare, list })).toEqual(invalid('spec.backend', 'write `backend: csi`'));
    },
  );
});

describe('display names (harvester/unique-display-name)', () => {
  const held = (metadata: object = {}, spec: object = {}): Draft =>
    aHarvesterImage(
      { ...spec },
      { name: 'image-b', uid: 'uid-9', labels: { 'harvesterhci.io/imageDisplayName': 'leap' }, ...metadata },
    );
  const conflict = { code: 409, causes: { 'spec.displayName': expect.stringContaining('image-b') } };

  it('are unique in a namespace', async () => {
    expect(await denialOf({ object: aHarvesterImage() }, clusterOf(held()))).toEqual(conflict);
  });

  it.each([
    ['in another namespace', held({ namespace: 'other' })],
    ['by an image on its way out', held({ deletionTimestamp: '2026-01-01T00:00:00Z' })],
    ['by an image whose label alone is the same', held({}, { displayName: 'another' })],
  ])('are available when they are used %s', async (_where, other) => {
    expect(await denialOf({ object: aHarvesterImage() }, clusterOf(other))).toBe('allowed');
  });

  it('of any length and characters are found by the digest in the label', async () => {
    const displayName = 'Debian 12 (bookworm)';
    const label = 'sha256-e0c1';
    const other = held({ labels: { 'harvesterhci.io/imageDisplayName': label } }, { displayName });
    const kube: KubeClient = {
      ...clusterOf(),
      list: async (_type, options) => {
        expect(options?.labelSelector).toMatch(/^harvesterhci.io\/imageDisplayName=sha256-[0-9a-f]{48}$/);
        return { metadata: { resourceVersion: '1' }, items: [other as never] };
      },
    };
    expect(await denialOf({ object: aHarvesterImage({ displayName }) }, kube)).toEqual(conflict);
  });

  it('are not checked again on update', async () => {
    const oldObject = aHarvesterImage({ description: 'old' });
    expect(await denialOf({ object: aHarvesterImage({ description: 'new' }), oldObject }, clusterOf(held()))).toBe(
      'allowed',
    );
  });
});

describe('updating an image', () => {
  const before = aHarvesterImage(
    { targetStorageClassName: 'a' },
    { annotations: { 'harvesterhci.io/storageClassName': 'a' } },
  );
  const change = (spec: object, metadata: object = {}): Draft => ({
    ...before,
    metadata: { ...before.metadata, ...metadata },
    spec: { ...before.spec, ...spec },
  });

  it.each([
    [
      'the annotation changed (harvester/fixed-class-annotation)',
      change({}, { annotations: { 'harvesterhci.io/storageClassName': 'b' } }),
      'metadata.annotations[harvesterhci.io/storageClassName]',
    ],
    [
      'the annotation removed (harvester/fixed-class-annotation)',
      change({}, { annotations: {} }),
      'metadata.annotations[harvesterhci.io/storageClassName]',
    ],
    [
      'the target changed (harvester/class-matches-annotation)',
      change({ targetStorageClassName: 'b' }),
      'spec.targetStorageClassName',
    ],
  ])('rejects %s', async (_rule, object, field) => {
    expect(await denialOf({ object, oldObject: before })).toMatchObject({
      code: 422,
      causes: { [field]: expect.stringContaining('must stay a') },
    });
  });

  it.each([
    ['a label', change({}, { labels: { a: 'b' } })],
    ['a description', change({ description: 'new' })],
    [
      'the retry annotation',
      change({}, { annotations: { ...(before.metadata['annotations'] as object), 'bullion.dev/retry': '1' } }),
    ],
    ['a finalizer', change({}, { finalizers: ['x'] })],
  ])('accepts a change of %s', async (_what, object) => {
    expect(await denialOf({ object, oldObject: before })).toBe('allowed');
  });

  it('accepts a class when none was set before', async () => {
    expect(
      await denialOf({ object: aHarvesterImage({ targetStorageClassName: 'a' }), oldObject: aHarvesterImage() }),
    ).toBe('allowed');
  });

  it('lets an object that is being deleted lose its finalizer, however invalid it is', async () => {
    const gone = { deletionTimestamp: '2026-01-01T00:00:00Z' };
    const oldObject = change({ backend: 'cdi', url: 'nowhere' }, { ...gone, finalizers: ['bullion.dev/image'] });
    const object = { ...oldObject, metadata: { ...oldObject.metadata, finalizers: [], annotations: {} } };
    expect(await denialOf({ object, oldObject })).toBe('allowed');
  });

  it('accepts a change of metadata of an image that could not be created any more', async () => {
    const oldObject = aHyperCloudImage({ source: { hostPath: { path: '/x', nodeName: 'n' } } });
    const object = { ...oldObject, metadata: { ...oldObject.metadata, annotations: { a: 'b' } } };
    expect(await denialOf({ object, oldObject })).toBe('allowed');
  });

  it('does not validate the status', async () => {
    const object = change({}, { annotations: {} });
    expect(await denialOf({ object, oldObject: before, subResource: 'status' })).toBe('allowed');
  });
});

describe('deleting a golden volume or snapshot', () => {
  const children = { volume: 'ubuntu-image-pvc', snapshot: 'ubuntu-image-snapshot' };
  const imageWith = (metadata: Record<string, unknown>, more: object = {}): Draft => ({
    ...aHyperCloudImage({}, metadata),
    status: { phase: 'Snapshotting', children, ...more },
  });
  const image = imageWith({});
  const owned = {
    namespace: 'default',
    labels: {
      'bullion.dev/owner-uid': 'uid-1',
      'bullion.dev/owner-kind': 'VirtualMachineImage.hypercloud.tmaxanc.com',
      'bullion.dev/role': 'volume',
    },
    annotations: {
      'bullion.dev/owner-name': 'ubuntu',
      'bullion.dev/owner-namespace': 'default',
      'bullion.dev/populated': '{}',
    },
  };
  const volume: Draft = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'ubuntu-image-pvc', ...owned },
  };
  const snapshot: Draft = {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name: 'ubuntu-image-snapshot', ...owned, labels: { ...owned.labels, 'bullion.dev/role': 'snapshot' } },
    status: { readyToUse: true },
  };

  it.each([
    ['volume', volume],
    ['snapshot', snapshot],
  ])('is rejected while the image of a %s exists', async (_what, oldObject) => {
    const { allowed, status } = await validate({ oldObject }, clusterOf(image));
    expect(allowed).toBe(false);
    expect(status).toMatchObject({ code: 403, reason: 'Forbidden' });
    expect(status?.message).toContain(
      'VirtualMachineImage.hypercloud.tmaxanc.com default/ubuntu: delete that image instead',
    );
  });

  it.each([
    'system:serviceaccount:kube-system:generic-garbage-collector',
    'system:serviceaccount:kube-system:namespace-controller',
    'system:kube-controller-manager',
    'system:serviceaccount:bullion-system:initialize',
  ])('is allowed for %s', async (username) => {
    expect(await denialOf({ oldObject: volume, username }, clusterOf(image))).toBe('allowed');
  });

  it.each([
    'system:serviceaccount:bullion-system-2:initialize',
    'system:serviceaccount:default:generic-garbage-collector',
    'system:admin',
  ])('is not allowed for %s', async (username) => {
    expect(await denialOf({ oldObject: volume, username }, clusterOf(image))).toMatchObject({ code: 403 });
  });

  it.each([
    ['the image is gone', volume, clusterOf()],
    ['the image is on its way out', volume, clusterOf(imageWith({ deletionTimestamp: '2026-01-01T00:00:00Z' }))],
    ['another image has taken its name', volume, clusterOf(imageWith({ uid: 'uid-7' }))],
    ['the image records nothing', volume, clusterOf(imageWith({}, { children: undefined }))],
    ['the image records another one', volume, clusterOf(imageWith({}, { children: { volume: 'other' } }))],
    [
      'the image is stored elsewhere',
      { ...volume, metadata: { ...volume.metadata, namespace: 'other' } },
      clusterOf(image),
    ],
    [
      'the volume is not filled yet',
      {
        ...volume,
        metadata: { ...volume.metadata, annotations: { ...owned.annotations, 'bullion.dev/populated': undefined } },
      },
      clusterOf(image),
    ],
    ['the snapshot is not ready', { ...snapshot, status: { readyToUse: false } }, clusterOf(image)],
    ['the volume is none of ours', { ...volume, metadata: { name: 'x', namespace: 'default' } }, clusterOf(image)],
  ])('is allowed when %s', async (_why, oldObject, kube) => {
    expect(await denialOf({ oldObject }, kube)).toBe('allowed');
  });
});

describe('when the cluster cannot be queried', () => {
  it('leaves the decision to the failure policy', async () => {
    const kube: KubeClient = { ...clusterOf(), list: () => Promise.reject(new Unavailable('down')) };
    await expect(validate({ object: aHarvesterImage() }, kube)).rejects.toThrow('HTTP 500');
  });
});

describe('for any request', () => {
  const text = fc.oneof(
    fc.string(),
    fc.webUrl(),
    fc.constantFrom('csi', 'cdi', 'download', '', sha256, `sha256:${sha256}`),
  );
  const anything = fc.oneof(
    text,
    fc.integer(),
    fc.constant(null),
    fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 2 }),
  );
  const fields = fc.dictionary(
    fc.constantFrom(
      'backend',
      'displayName',
      'sourceType',
      'url',
      'checksum',
      'source',
      'pvc',
      'retry',
      'storageClassName',
    ),
    anything,
  );
  const draft = fc.tuple(fc.constantFrom(aHarvesterImage, aHyperCloudImage), fields);

  it('returns an answer', async () => {
    await fc.assert(
      fc.asyncProperty(draft, draft, async ([build, spec], [, old]) => {
        const created = await validate({ object: build(spec) });
        const updated = await validate({ object: build(spec), oldObject: build(old) });
        expect([typeof created.allowed, typeof updated.allowed]).toEqual(['boolean', 'boolean']);
        expect(created.allowed || created.status!.details!.causes!.length > 0).toBe(true);
      }),
    );
  });
});
