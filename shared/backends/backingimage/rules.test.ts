// Names, parameters and the requests to Longhorn: tables, with an in-memory cluster where objects are read.
import { describe, expect, it } from 'vitest';
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { backingImageNames, classParameters, correctedName, storageClassNames } from './manifests.ts';
import { readOrigin } from '#shared/backends/backingimage/origin.ts';
import { initialize } from '#shared/backends/backingimage/plan.ts';
import { check } from '#shared/backends/backingimage/observed.ts';
import { validator } from '#shared/backends/backingimage/validator.ts';
import {
  aBackingImage,
  aHarvesterImage,
  aStorageClass,
  anImage,
  imageRef,
  testSettings,
  aGoodFile,
} from '#test/support/builders.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import type { Image, ImageSource } from '#shared/backends/backend.ts';

const { uid } = imageRef;
const ref = { ...imageRef, namespace: 'default', name: 'ubuntu' };
const longhorn = (name: string, parameters: Record<string, string> = {}) =>
  aStorageClass(name, { provisioner: 'driver.longhorn.io', parameters });

describe('names', () => {
  it('contain the UID, or are those of Harvester', () => {
    expect(backingImageNames({ ref, source: undefined })).toEqual({
      own: `vmi-${uid}`,
      candidates: ['default-ubuntu', `vmi-${uid}`],
    });
    expect(storageClassNames({ ref, source: undefined })).toEqual({
      own: `lh-${uid}`,
      candidates: [`lh-${uid}`, 'longhorn-ubuntu'],
    });
  });

  it('are valid for Longhorn', () => {
    expect(backingImageNames({ ref, source: undefined }).own).toHaveLength(40);
    const long = correctedName(`Default-${'x'.repeat(60)}`);
    expect(long).toMatch(/^default-x+-[0-9a-f]{8}$/);
    expect(long).toHaveLength(40);
  });

  it('of a restored image are those in its backup', () => {
    const source = { type: 'restore', url: 's3://backups@region/?backingImage=vmi-1234' } as const;
    expect(backingImageNames({ ref, source }).own).toBe('vmi-1234');
    expect(storageClassNames({ ref, source }).own).toBe('lh-1234');
  });

  it('from a backup are ignored when they are invalid', () => {
    const source = { type: 'restore', url: 's3://backups@region/?backingImage=../etc' } as const;
    expect(backingImageNames({ ref, source }).own).toBe(`vmi-${uid}`);
  });

  it.each([
    ['its UID', `vmi-${uid}`, `lh-${uid}`],
    ['its namespace and name, as Harvester had it', 'default-ubuntu', 'longhorn-ubuntu'],
  ])('of an image with %s are found', async (_what, name, className) => {
    const kube = createMemoryKube();
    const marks = { 'harvesterhci.io/imageId': 'default/ubuntu' };
    const metadata = { name, namespace: 'longhorn-system', annotations: marks };
    kube.seed(backingImages, { ...aBackingImage([{ state: 'ready' }]), metadata });
    kube.seed(storageClasses, longhorn(className, { backingImage: name }));
    const { backingImage, storageClass } = await check(kube, anImage({ ref }));
    expect([backingImage?.metadata.name, storageClass?.metadata.name]).toEqual([name, className]);
  });

  it('of an image whose name Longhorn shortened are found', async () => {
    const kube = createMemoryKube();
    const long = { ...ref, name: 'u'.repeat(50) };
    const annotations = { 'harvesterhci.io/imageId': `default/${long.name}` };
    const metadata = { name: correctedName(`default-${long.name}`), namespace: 'longhorn-system', annotations };
    kube.seed(backingImages, { ...aBackingImage([{ state: 'ready' }]), metadata });
    expect((await check(kube, anImage({ ref: long }))).backingImage?.metadata.name).toBe(metadata.name);
  });

  it('of an image of the same name in a different namespace are ignored', async () => {
    const kube = createMemoryKube();
    const other = { name: 'a-b-c', namespace: 'longhorn-system', annotations: { 'harvesterhci.io/imageId': 'a/b-c' } };
    kube.seed(backingImages, { ...aBackingImage([{ state: 'ready' }]), metadata: other });
    const image = anImage({ ref: { ...ref, namespace: 'a-b', name: 'c' } });
    expect((await check(kube, image)).backingImage).toBeUndefined();
    const own = anImage({ ref: { ...ref, namespace: 'a', name: 'b-c' } });
    expect((await check(kube, own)).backingImage?.metadata.name).toBe('a-b-c');
  });
});

describe('class parameters', () => {
  const defaults = { numberOfReplicas: '3', staleReplicaTimeout: '30', migratable: 'true' };
  it.each([
    ['no parameters', undefined, undefined, defaults],
    ['a class of another driver', { numberOfReplicas: '1' }, aStorageClass(), { ...defaults, numberOfReplicas: '1' }],
    [
      'a Longhorn class wins',
      { numberOfReplicas: '1' },
      longhorn('a', { numberOfReplicas: '2' }),
      { ...defaults, numberOfReplicas: '2' },
    ],
    [
      'parameters that are not for disks are omitted',
      undefined,
      longhorn('a', { fsType: 'ext4', dataLocality: 'disabled' }),
      { ...defaults, dataLocality: 'disabled' },
    ],
    ['migration stays on', { migratable: 'false' }, undefined, defaults],
  ])('%s', (_name, asked, template, expected) => {
    expect(classParameters(asked, template)).toEqual(expected);
  });
});

const secret = {
  numberOfReplicas: '1',
  'csi.storage.k8s.io/node-publish-secret-name': 'key',
  'csi.storage.k8s.io/node-publish-secret-namespace': 'default',
};

const foreign = { ...secret, 'csi.storage.k8s.io/node-publish-secret-namespace': 'bank' };

/** A cluster with Longhorn volumes, and a source image that is ready. */
const aCluster = () => {
  const kube = createMemoryKube();
  kube.seed(storageClasses, longhorn('longhorn'));
  kube.seed(storageClasses, longhorn('engine-2', { dataEngine: 'v2' }));
  kube.seed(storageClasses, longhorn('secret', { encrypted: 'true', ...secret }));
  kube.seed(storageClasses, aStorageClass('local'));
  kube.seed(storageClasses, longhorn('lh-other', { backingImage: 'vmi-other' }));
  for (const className of ['longhorn', 'engine-2', 'secret', 'local']) {
    const driver = className === 'local' ? 'local.bullion.dev' : 'driver.longhorn.io';
    kube.seed(persistentVolumes, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `pv-${className}` },
      spec: { capacity: {}, accessModes: [], csi: { driver, volumeHandle: `volume-${className}` } },
    });
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: 'default', name: `of-${className}` },
      spec: { storageClassName: className, volumeName: `pv-${className}` },
      status: { phase: 'Bound' },
    });
  }
  const source = aHarvesterImage({ metadata: { name: 'source', namespace: 'default', uid: 'source-uid' } });
  const spec = { ...source.spec, backend: 'backingimage' as const, storageClassParameters: secret };
  const conditions = [{ type: 'Imported', status: 'True' as const }];
  const stored = (name: string, rest: Partial<HarvesterImage> = {}) =>
    kube.seed(harvesterImageKind.type, {
      ...source,
      spec,
      status: { conditions, children: { backingImage: 'vmi-source' } },
      ...rest,
      metadata: { namespace: 'default', name, uid: `${name}-uid` },
    });
  stored('source');
  stored('unready', { status: {} });
  const securityParameters = {
    cryptoOperation: 'encrypt' as const,
    sourceImageName: 'source',
    sourceImageNamespace: 'default',
  };
  stored('encrypted', { spec: { ...spec, securityParameters } });
  stored('keyless', { spec: { ...spec, storageClassParameters: {} } });
  stored('stranger', { spec: { ...spec, storageClassParameters: foreign } });
  stored('elsewhere', { status: { conditions, children: { volume: 'elsewhere' } } });
  stored('engine-2', { status: { conditions, children: { backingImage: 'vmi-engine-2' } } });
  const ready = aBackingImage([{ state: 'ready' }]);
  const named = (name: string) => ({ name, namespace: 'longhorn-system' });
  kube.seed(backingImages, { ...ready, metadata: named('vmi-source') });
  kube.seed(backingImages, {
    ...ready,
    metadata: named('vmi-engine-2'),
    spec: { ...ready.spec, dataEngine: 'v2' as const },
  });
  return kube;
};

const clone = (imageName: string, operation?: 'encrypt' | 'decrypt'): ImageSource => ({
  type: 'clone',
  namespace: 'default',
  imageName,
  operation,
});
const exported = (claimName: string): ImageSource => ({ type: 'export-from-volume', namespace: 'default', claimName });
const from = (source: ImageSource, over: Partial<Image> = {}): Image =>
  anImage({ backend: 'backingimage', source, storage: { classParameters: secret }, ...over } as never);

describe('Longhorn gets', () => {
  it.each([
    [
      'a download',
      { type: 'http', url: 'https://x.example/a' },
      { sourceType: 'download', parameters: { url: 'https://x.example/a' } },
    ],
    ['an upload', { type: 'upload' }, { sourceType: 'upload', parameters: {} }],
    [
      'a backup',
      { type: 'restore', url: 's3://b@r/?x' },
      { sourceType: 'restore', parameters: { 'backup-url': 's3://b@r/?x' } },
    ],
    [
      'a volume',
      exported('of-longhorn'),
      { sourceType: 'export-from-volume', parameters: { 'volume-name': 'volume-longhorn', 'export-type': 'raw' } },
    ],
    [
      'a copy',
      clone('source'),
      { sourceType: 'clone', parameters: { 'backing-image': 'vmi-source', encryption: 'ignore' } },
    ],
    [
      'an encrypted copy',
      clone('source', 'encrypt'),
      {
        sourceType: 'clone',
        parameters: {
          'backing-image': 'vmi-source',
          encryption: 'encrypt',
          secret: 'key',
          'secret-namespace': 'default',
        },
      },
    ],
    [
      'a decrypted copy, with the key of its source',
      clone('encrypted', 'decrypt'),
      {
        sourceType: 'clone',
        parameters: {
          'backing-image': 'vmi-source',
          encryption: 'decrypt',
          secret: 'key',
          'secret-namespace': 'default',
        },
      },
    ],
  ] as const)('%s', async (_name, source, origin) => {
    expect(await readOrigin(aCluster(), from(source), async () => aGoodFile)).toEqual({ is: 'ready', origin });
  });

  const startWith = async (found: Partial<Inspection>) => {
    const inspection: Inspection = { format: 'raw', compression: 'none', size: 1024, ...found };
    const image = from({ type: 'http', url: 'https://x.example/a' });
    const observed = await check(aCluster(), image, async () => ({ is: 'found', inspection }));
    return initialize(image, observed, { now: 0, settings: testSettings });
  };

  it.each<readonly [string, Partial<Inspection>]>([
    ['a qcow2', { format: 'qcow2', size: 1000 }],
    ['a raw disk', { size: 1024 }],
    ['a disc', { format: 'iso', size: 2048 }],
    ['a raw disk of unknown length', { size: undefined }],
  ])('a download of %s', async (_what, found) => {
    const { actions } = await startWith(found);
    const made = actions.map((action) => action.do === 'create' && action.object.kind);
    expect(made).toEqual(['BackingImage', 'StorageClass']);
  });

  it.each<readonly [string, Partial<Inspection>, RegExp]>([
    ['half a sector', { size: 1000 }, /1000 bytes.*multiple of 512.*truncate/],
    ['half a sector of a disc', { format: 'iso', size: 2047 }, /2047 bytes.*multiple of 512/],
    ...(['gz', 'xz', 'zst'] as const).map(
      (compression) =>
        [`a disk in ${compression}`, { compression }, new RegExp(`raw in ${compression}.*unpack`)] as const,
    ),
    ...(['vmdk', 'vdi', 'vhd', 'vhdx'] as const).map(
      (format) => [`a ${format}`, { format }, new RegExp(`${format}.*convert`)] as const,
    ),
  ])('no download for %s', async (_what, found, words) => {
    const { actions, state } = await startWith(found);
    expect(actions).toEqual([]);
    expect(state).toMatchObject({ phase: 'Failed', reason: 'UnsupportedFormat' });
    expect(state.message).toMatch(words);
  });

  it.each([
    [
      'a source that is unreachable at the moment',
      { is: 'waiting', reason: 'SourceUnreachable', message: 'no route' },
      'Pending',
    ],
    [
      'a file that is not a disk',
      { is: 'refused', reason: 'ExternalReference', message: 'it has a backing file' },
      'Failed',
    ],
  ] as const)('nothing of %s', async (_what, looked, phase) => {
    const image = from({ type: 'http', url: 'https://x.example/a' });
    const context = { now: 0, settings: testSettings };
    const { actions, state } = initialize(image, await check(aCluster(), image, async () => looked), context);
    expect({ actions, ...state }).toMatchObject({ actions: [], phase, reason: looked.reason });
    expect(state.message).toContain(looked.message);
    const unseen = initialize(image, await check(aCluster(), image), context);
    expect({ actions: unseen.actions, ...unseen.state }).toMatchObject({ actions: [], reason: 'SourceNotReady' });
  });

  it.each([
    ['a volume of another driver', exported('of-local'), 'refused', 'SourceElsewhere'],
    ['a volume of data engine v2', exported('of-engine-2'), 'refused', 'SourceUnsupported'],
    ['an encrypted volume', exported('of-secret'), 'refused', 'SourceUnsupported'],
    ['a volume that is not there', exported('none'), 'waiting', 'SourceNotFound'],
    ['an image that is not ready', clone('unready'), 'waiting', 'SourceNotReady'],
    ['an image that is not there', clone('none'), 'waiting', 'SourceNotFound'],
    ['an image of data engine v2', clone('engine-2'), 'refused', 'SourceUnsupported'],
    ['an image that Longhorn does not keep', clone('elsewhere'), 'refused', 'SourceElsewhere'],
    [
      'an image to decrypt with a key its author had no right to',
      clone('stranger', 'decrypt'),
      'refused',
      'NotAuthorized',
    ],
    ['an image to decrypt without its key', clone('keyless', 'decrypt'), 'refused', 'SecretMissing'],
  ] as const)('%s is %s', async (_name, source, is, reason) => {
    expect(await readOrigin(aCluster(), from(source))).toMatchObject({ is, reason });
  });

  it.each([
    ['what a user wrote', { classParameters: foreign }],
    ['the class it is modelled on', { className: 'foreign' }],
  ])('nothing when %s refers to a Secret of another namespace and admission was bypassed', async (_what, storage) => {
    const kube = aCluster();
    kube.seed(storageClasses, longhorn('foreign', { encrypted: 'true', ...foreign }));
    const image = from({ type: 'upload' }, { storage });
    const plan = initialize(image, await check(kube, image), { now: 0, settings: testSettings });
    expect([plan.actions, plan.state]).toMatchObject([[], { phase: 'Failed', reason: 'NotAuthorized' }]);
    const granted = { ...image, grants: [{ use: 'read-secret', namespace: 'bank', name: '*' }] };
    expect(initialize(granted, await check(kube, granted), { now: 0, settings: testSettings }).actions).toHaveLength(2);
  });

  it('nothing for a parameter that no class of an image has', async () => {
    const kube = aCluster();
    const orphan = {
      'csi.storage.k8s.io/controller-publish-secret-name': 'key',
      backingImageDataSourceParameters: '{}',
    };
    const image = from({ type: 'upload' }, { storage: { classParameters: { ...secret, ...orphan } } });
    const { actions } = initialize(image, await check(kube, image), { now: 0, settings: testSettings });
    const made = actions.find((action) => action.do === 'create' && action.object.kind === 'StorageClass');
    expect(made).toMatchObject({ object: { parameters: { ...secret, backingImage: expect.any(String) as string } } });
    expect(JSON.stringify(made)).not.toMatch(/controller-publish|DataSourceParameters/);
  });

  it('one clone of a source at a time', async () => {
    const kube = aCluster();
    const first = from(clone('source'), { ref: { ...imageRef, uid: 'first', name: 'first' } });
    const second = from(clone('source'), { ref: { ...imageRef, uid: 'second', name: 'second' } });
    const [create] = initialize(first, await check(kube, first), { now: 0, settings: testSettings }).actions;
    if (create?.do !== 'create') throw new Error('nothing was made');
    await kube.create(create.type, create.object);
    expect(await readOrigin(kube, second)).toMatchObject({ is: 'busy', reason: 'SourceBusy' });
    // However long the other takes: it has a deadline, and who waits in line for it has none.
    const { actions, state } = initialize(second, await check(kube, second), { now: 0, settings: testSettings });
    expect({ actions, ...state }).toMatchObject({ actions: [], phase: 'Pending', reason: 'SourceBusy' });
    expect(state.deadline).toBeUndefined();
    kube.edit(backingImages, create.object.metadata, (made) => {
      made.status = { diskFileStatusMap: { disk: { state: 'ready' } } };
    });
    expect(await readOrigin(kube, second)).toMatchObject({ is: 'ready' });
  });
});

describe('rules at admission', () => {
  const http: ImageSource = { type: 'http', url: 'https://x.example/a' };
  const named = (className: string, source: ImageSource = http): Image => anImage({ source, storage: { className } });
  it.each([
    ['a checksum of another kind', anImage({ checksum: { algorithm: 'sha256', hex: 'ab' } }), 'spec.checksum'],
    [
      'a number of replicas that is none',
      anImage({ storage: { classParameters: { numberOfReplicas: 'many' } } }),
      'spec.storageClassParameters.numberOfReplicas',
    ],
    ['a class that is not there (harvester/class-exists)', named('none'), 'spec.targetStorageClassName'],
    ['a class of another image (harvester/class-not-of-image)', named('lh-other'), 'spec.targetStorageClassName'],
    [
      'encryption without a Secret (harvester/class-encrypts)',
      named('longhorn', clone('source', 'encrypt')),
      'spec.targetStorageClassName',
    ],
    [
      'encryption twice (harvester/not-encrypted-twice)',
      named('secret', clone('encrypted', 'encrypt')),
      'spec.securityParameters.sourceImageName',
    ],
    [
      'decryption of what is not encrypted (harvester/decrypt-encrypted)',
      named('longhorn', clone('source', 'decrypt')),
      'spec.securityParameters.sourceImageName',
    ],
    [
      'a source that is not there (harvester/source-image-exists)',
      named('longhorn', clone('none')),
      'spec.securityParameters.sourceImageName',
    ],
    [
      'a source that is not ready (harvester/source-image-ready)',
      named('longhorn', clone('unready')),
      'spec.securityParameters.sourceImageName',
    ],
  ])('reject %s', async (_name, image, field) => {
    expect((await validator.create(image, aCluster())).map((it) => it.field)).toContain(field);
  });

  it.each([
    ['a download', named('longhorn')],
    ['encryption', named('secret', clone('source', 'encrypt'))],
    ['decryption', named('longhorn', clone('encrypted', 'decrypt'))],
  ])('allow %s', async (_name, image) => {
    expect(await validator.create(image, aCluster())).toEqual([]);
  });

  it('keep the parameters that disks are created with (harvester/fixed-parameters)', () => {
    const before = anImage({ storage: { classParameters: { a: '1', b: '2' } } });
    expect(validator.update(before, anImage({ storage: { classParameters: { b: '2', a: '1' } } }))).toEqual([]);
    expect(validator.update(before, anImage({ storage: { classParameters: { a: '2' } } }))).toHaveLength(1);
  });
});
