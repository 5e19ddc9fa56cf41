// Sizes, storage profiles, snapshot classes, Jobs: the pure parts of filling a volume.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatQuantity, parseQuantity } from '#shared/api/quantity.ts';
import { claimProfileOf, defaultClassOf } from '#shared/populate/storage/profile.ts';
import { diskBytesIn, fileVolumeBytesFor, volumeBytesFor } from '#shared/populate/population.ts';
import { chooseSnapshotClass } from '#shared/populate/storage/snapshot.ts';
import { buildVolume, inspectedOf, populatedPatch, populationOf } from '#shared/populate/population.ts';
import { type TransferRequest, backoffSeconds, buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { aPopulation, aSnapshotClass, aStorageClass, aVolume, imageRef, testSettings } from '#test/support/builders.ts';

const mib = 2 ** 20;
const modes = ['Block', 'Filesystem'] as const;

describe('volumeBytesFor', () => {
  it.each([
    [1, 'Block', mib],
    [mib, 'Block', mib],
    [mib + 1, 'Block', 2 * mib],
    [1024 * mib, 'Block', 1024 * mib],
    [mib, 'Filesystem', 1_111_491],
    [10_000_000, 'Filesystem', 11_114_906],
    [64 * mib, 'Filesystem', 71_135_396],
    [128 * mib, 'Filesystem', 142_270_792],
    [1024 * mib, 'Filesystem', 1_138_166_334],
    [100 * 1024 * mib, 'Filesystem', 113_816_633_344],
  ] as const)('a disk of %d bytes on %s needs %d', (disk, mode, bytes) => {
    expect(volumeBytesFor(disk, mode, 0.06)).toBe(bytes);
  });

  const disks = fc.integer({ min: 1, max: 2 ** 46 });
  const shares = fc.integer({ min: 0, max: 1000 }).map((thousandths) => thousandths / 1000);

  it('always has room for the disk it was computed for, and for no disk that is a whole MiB larger', () => {
    fc.assert(
      fc.property(disks, fc.constantFrom(...modes), shares, (disk, mode, overhead) => {
        const room = diskBytesIn(volumeBytesFor(disk, mode, overhead), mode, overhead);
        expect(room).toBeGreaterThanOrEqual(disk);
        expect(room).toBeLessThan(disk + mib);
      }),
    );
  });

  it('never requests less for a larger disk, or for a file system with more overhead', () => {
    fc.assert(
      fc.property(disks, disks, shares, shares, (a, b, one, other) => {
        const [small, large] = [Math.min(a, b), Math.max(a, b)];
        const [thrifty, greedy] = [Math.min(one, other), Math.max(one, other)];
        expect(volumeBytesFor(large, 'Filesystem', greedy)).toBeGreaterThanOrEqual(
          volumeBytesFor(small, 'Filesystem', thrifty),
        );
        expect(fileVolumeBytesFor(large, greedy)).toBeGreaterThanOrEqual(fileVolumeBytesFor(small, thrifty));
      }),
    );
  });

  it.each([
    [mib, 65 * mib],
    [64 * mib, 128 * mib],
    [100 * 1024 * mib, 113_816_633_344],
  ])('has %d bytes for journals and tables when a file is written whole', (file, bytes) => {
    expect(fileVolumeBytesFor(file, 0.06)).toBe(bytes);
  });
});

describe('quantities', () => {
  it.each([
    ['3Gi', 3 * 2 ** 30],
    ['1.5Gi', 1.5 * 2 ** 30],
    ['500M', 5e8],
    ['1e3', 1000],
    [' 10 ', 10],
    [7, 7],
    ['100m', 1],
  ])('parses %j', (text, bytes) => {
    expect(parseQuantity(text)).toBe(bytes);
  });

  it.each(['', '-1Gi', 'Gi', '1GB', '1 Gi', 'NaN', '9999Ei', undefined])('rejects %j', (text) => {
    expect(parseQuantity(text)).toBeUndefined();
  });

  it('parses what it formats', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (bytes) => {
        expect(parseQuantity(formatQuantity(bytes))).toBe(bytes);
      }),
    );
  });
});

describe('claimProfileOf', () => {
  const annotated = (text: string) =>
    aStorageClass('a', {
      metadata: { name: 'a', annotations: { 'cdi.harvesterhci.io/storageProfileVolumeModeAccessModes': text } },
    });

  it.each([
    ['no class', undefined, { volumeMode: 'Block', accessModes: ['ReadWriteOnce'] }],
    ['a block driver', aStorageClass(), { volumeMode: 'Block', accessModes: ['ReadWriteOnce'] }],
    [
      'NFS',
      aStorageClass('a', { provisioner: 'nfs.csi.k8s.io' }),
      { volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'] },
    ],
    [
      'CephFS',
      aStorageClass('a', { provisioner: 'rook-ceph.cephfs.csi.ceph.com' }),
      { volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'] },
    ],
    [
      'an annotation',
      annotated('{"Filesystem":["ReadWriteMany"]}'),
      { volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] },
    ],
    ['an annotation that is not valid JSON', annotated('{'), { volumeMode: 'Block', accessModes: ['ReadWriteOnce'] }],
    [
      'an annotation of no known mode',
      annotated('{"Tape":[]}'),
      { volumeMode: 'Block', accessModes: ['ReadWriteOnce'] },
    ],
  ] as const)('%s', (_name, storageClass, profile) => {
    expect(claimProfileOf(storageClass)).toEqual(profile);
  });

  it('prefers the default for virtual machines to the default of the cluster, and the newer of two', () => {
    const marked = (name: string, mark: string, creationTimestamp = '2026-01-01T00:00:00Z') =>
      aStorageClass(name, { metadata: { name, creationTimestamp, annotations: { [mark]: 'true' } } });
    const cluster = 'storageclass.kubernetes.io/is-default-class';
    const [old, young] = [marked('old', cluster), marked('young', cluster, '2026-02-01T00:00:00Z')];
    expect(defaultClassOf([aStorageClass('plain')])).toBeUndefined();
    expect(defaultClassOf([old, young])?.metadata.name).toBe('young');
    const virt = marked('virt', 'storageclass.kubevirt.io/is-default-virt-class');
    expect(defaultClassOf([young, virt])?.metadata.name).toBe('virt');
  });
});

describe('chooseSnapshotClass', () => {
  const own = aSnapshotClass('b-own');
  const preferred = aSnapshotClass('z-preferred', {
    metadata: { name: 'z-preferred', annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
  });
  const other = aSnapshotClass('a-other', { driver: 'other' });
  const driver = 'local.bullion.dev';

  it.each([
    {
      takes: 'the first of the driver',
      classes: [other, own],
      asked: undefined,
      choice: { is: 'found', name: 'b-own' },
    },
    { takes: 'the default', classes: [own, preferred], asked: undefined, choice: { is: 'found', name: 'z-preferred' } },
    { takes: 'none where the driver has none', classes: [other], asked: undefined, choice: { is: 'none' } },
    { takes: 'the one asked for', classes: [own, preferred], asked: 'b-own', choice: { is: 'found', name: 'b-own' } },
    {
      takes: 'any where an empty name is asked for',
      classes: [own],
      asked: '',
      choice: { is: 'found', name: 'b-own' },
    },
  ])('chooses $takes', ({ classes, asked, choice }) => {
    expect(chooseSnapshotClass(classes, driver, asked)).toEqual(choice);
  });

  it.each([
    ['missing', 'does not exist'],
    ['a-other', 'is of driver other, but the volume is of local.bullion.dev'],
  ])('rejects %s', (asked, message) => {
    expect(chooseSnapshotClass([own, other], driver, asked)).toEqual({
      is: 'wrong',
      message: expect.stringContaining(message),
    });
  });
});

describe('buildTransferJob', () => {
  const request = {
    mode: 'import',
    owner: imageRef,
    source: { type: 'http', url: 'https://images.example/a.qcow2' },
    retries: 3,
  } as const;
  const block = { claimName: 'golden', volumeMode: 'Block', capacityBytes: 2 ** 30 } as const;
  const job = buildTransferJob({ ...request, target: block }, { ...testSettings, eventSink: 'http://broker' });
  const pod = job.spec.template.spec;
  const [container] = pod.containers;

  it('passes a specification to the worker that it can parse', () => {
    const spec = TransferSpec.parse(
      JSON.parse(container!.env!.find(({ name }) => name === 'BULLION_TRANSFER')!.value!),
    );
    expect(spec).toMatchObject({ mode: 'import', target: { path: '/dev/bullion-target', capacityBytes: 2 ** 30 } });
    expect(container?.env?.map(({ name }) => name)).toEqual([
      'BULLION_TRANSFER',
      'BULLION_OWNER',
      'POD_NAME',
      'K_SINK',
    ]);
  });

  it('has a token for the Broker only when that requires one, and a trace when one is recorded', () => {
    const told = { eventSink: 'http://broker', eventAudience: 'broker', traceEndpoint: 'http://collector:4318' };
    const { spec } = buildTransferJob({ ...request, target: block }, { ...testSettings, ...told }).spec.template;
    const [{ env = [], volumeMounts = [] }] = spec.containers as never as [typeof container & object];
    expect(spec.automountServiceAccountToken).toBe(false);
    expect(spec.volumes).toContainEqual({
      name: 'oidc-token',
      projected: { sources: [{ serviceAccountToken: { audience: 'broker', expirationSeconds: 3600, path: 'token' } }] },
    });
    expect(volumeMounts).toContainEqual({ name: 'oidc-token', mountPath: '/oidc' });
    expect(env).toContainEqual({ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'http://collector:4318' });
    expect(env.find(({ name }) => name === 'TRACEPARENT')?.value).toContain(imageRef.uid.replaceAll('-', ''));
  });

  it('has a token of its service account only for a workload identity, which no API server accepts', () => {
    const identity = { cloud: 'azure', tenant: 't', client: 'c' } as const;
    const source = { type: 'http', url: 'https://golden.blob.core.windows.net/images/a', identity } as const;
    const { spec } = buildTransferJob({ ...request, source }, testSettings).spec.template;
    const audience = 'api://AzureADTokenExchange';
    const projected = { sources: [{ serviceAccountToken: { audience, expirationSeconds: 3600, path: 'token' } }] };
    expect(spec.automountServiceAccountToken).toBe(false);
    expect(spec.volumes).toContainEqual({ name: 'source-identity', projected });
    const [{ env, volumeMounts } = {}] = spec.containers;
    expect(volumeMounts).toContainEqual({ name: 'source-identity', mountPath: '/source-identity', readOnly: true });
    expect(TransferSpec.parse(JSON.parse(env?.[0]?.value ?? '')).source).toMatchObject({
      workload: { identity, tokenFile: '/source-identity/token' },
    });
  });

  it.each([
    [120 * 1024, 120],
    [0, 1],
  ])('has the minimum rate of the settings: %d bytes in %d seconds', (slowestBytes, slowestSeconds) => {
    const slow = buildTransferJob(request, { ...testSettings, slowestBytes, slowestSeconds });
    const { limits } = TransferSpec.parse(JSON.parse(slow.spec.template.spec.containers[0]?.env?.[0]?.value ?? ''));
    expect(limits.floor).toEqual({ bytes: slowestBytes, seconds: slowestSeconds });
  });

  it('complies with the restricted Pod Security Standard and has no token', () => {
    expect(pod).toMatchObject({
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(container).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      resources: { limits: { memory: '512Mi' } },
    });
  });

  it.each<[what: string, more: Partial<TransferRequest>, asRoot: number, otherwise: number]>([
    ['fills a device', { target: block }, 0, 107],
    ['reads a device', { source: { type: 'claim', claimName: 'root', volumeMode: 'Block' } }, 0, 107],
    ['fills a file system', { target: { ...block, volumeMode: 'Filesystem' } }, 107, 107],
    ['inspects a source', { mode: 'inspect', target: undefined }, 107, 107],
  ])('runs %s as root only when that is allowed, and never with capabilities', (_what, more, asRoot, otherwise) => {
    for (const [devicesAsRoot, user] of [
      [true, asRoot],
      [false, otherwise],
    ] as const) {
      const asked = { ...request, target: { ...block, volumeMode: 'Filesystem' as const }, ...more };
      const { spec } = buildTransferJob(asked, { ...testSettings, devicesAsRoot }).spec.template;
      expect(spec.securityContext).toMatchObject({
        runAsUser: user,
        runAsNonRoot: user !== 0,
        runAsGroup: 107,
        fsGroup: 107,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(spec.containers[0]?.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });

  it('has a name that is a valid label value, and lets every attempt run to its limit', () => {
    expect(job.metadata.name.length).toBeLessThanOrEqual(63);
    expect(job.spec.backoffLimit).toBe(3);
    expect(job.spec.activeDeadlineSeconds).toBeGreaterThan(4 * testSettings.attemptSeconds);
    expect([1, 2, 3, 6, 7, 20].map(backoffSeconds)).toEqual([10, 20, 40, 320, 360, 360]);
  });

  it('reads an object with the Secret of its own namespace, which it refers to by name', () => {
    const objectStore = { endpoint: 'https://s3.example', region: 'r', pathStyle: true, secretName: 'store-login' };
    const source = { type: 'object', bucket: 'vmimage', key: 'a/../b' } as const;
    const built = buildTransferJob({ ...request, source }, { ...testSettings, objectStore }).spec.template.spec;
    const [only] = built.containers;
    const { source: told } = TransferSpec.parse(JSON.parse(only?.env?.[0]?.value ?? ''));
    const { secretName, ...place } = objectStore;
    expect(told).toEqual({ ...place, ...source, type: 's3', secretDir: '/source-secret', secretName });
    expect(built.volumes).toContainEqual({ name: 'source-secret', secret: { secretName, optional: true } });
    expect(only?.volumeMounts).toContainEqual({ name: 'source-secret', mountPath: '/source-secret', readOnly: true });
    const open = buildTransferJob({ ...request, source }, { ...testSettings, objectStore: place });
    expect(JSON.stringify(open)).not.toMatch(/secret/i);
    expect(() => buildTransferJob({ ...request, source }, testSettings)).toThrow('no object store');
  });

  it('exports a claim to an object in the store, with the credentials of both', () => {
    const objectStore = { endpoint: 'https://s3.example', region: 'r', pathStyle: true, secretName: 'store-login' };
    const source = { type: 'claim', claimName: 'root', volumeMode: 'Filesystem' } as const;
    const form = { format: 'qcow2', compression: 'zstd' } as const;
    const object = { type: 'object', bucket: 'exports', key: 'root.qcow2' } as const;
    const asked = { ...request, mode: 'export', source, target: undefined, export: { object, form } } as const;
    const built = buildTransferJob(asked, { ...testSettings, objectStore }).spec.template.spec;
    const [only] = built.containers;
    const { secretName, ...place } = objectStore;
    const stored = { ...place, bucket: 'exports', key: 'root.qcow2', secretDir: '/source-secret', secretName };
    expect(TransferSpec.parse(JSON.parse(only?.env?.[0]?.value ?? ''))).toMatchObject({
      mode: 'export',
      source: { type: 'volume', path: '/source/disk.img' },
      export: { form, object: stored, guestDigest: false },
    });
    expect(built.volumes?.map(({ name }) => name)).toEqual(['scratch', 'source', 'source-secret']);
    expect(only?.volumeMounts).toContainEqual({ name: 'source-secret', mountPath: '/source-secret', readOnly: true });
  });

  it('reads a web source with the Secret and ConfigMap of its owner, which it refers to by name', () => {
    const source = {
      type: 'http',
      url: 'https://images.example/a',
      secretName: 'login',
      bundleName: 'corporate',
      headers: ['X-A: 1'],
      headerSecrets: ['tokens'],
    } as const;
    const built = buildTransferJob({ ...request, source }, testSettings).spec.template.spec;
    const [only] = built.containers;
    expect(TransferSpec.parse(JSON.parse(only?.env?.[0]?.value ?? '')).source).toEqual({
      type: 'http',
      url: 'https://images.example/a',
      secretDir: '/source-secret',
      secretName: 'login',
      ca: { dir: '/source-ca', name: 'corporate' },
      secretHeaders: ['X-A: 1'],
      headerSecrets: [{ dir: '/source-headers/0', name: 'tokens' }],
    });
    expect(built.volumes?.slice(1)).toEqual([
      { name: 'source-secret', secret: { secretName: 'login', optional: true } },
      { name: 'source-ca', configMap: { name: 'corporate', optional: true } },
      { name: 'source-headers-0', secret: { secretName: 'tokens', optional: true } },
    ]);
    expect(only?.volumeMounts?.map(({ mountPath }) => mountPath)).toEqual([
      '/scratch',
      '/source-secret',
      '/source-ca',
      '/source-headers/0',
    ]);
  });

  it('mounts a file system volume as a folder', () => {
    const { containers } = buildTransferJob(
      { ...request, target: { ...block, volumeMode: 'Filesystem' } },
      testSettings,
    ).spec.template.spec;
    expect(containers[0]?.volumeMounts).toContainEqual({ name: 'target', mountPath: '/target' });
    expect(containers[0]).not.toHaveProperty('volumeDevices');
  });
});

describe('inspectedOf', () => {
  const request = {
    owner: imageRef,
    name: 'golden',
    storageClassName: 'local',
    volumeMode: 'Block',
    accessModes: ['ReadWriteOnce'],
    bytes: 2 ** 30,
    annotations: {},
  } as const;

  it('returns the inspection that determined the size of the volume', () => {
    const inspected = { format: 'raw', compression: 'none', virtualSize: 2 ** 30 } as const;
    expect(inspectedOf(buildVolume({ ...request, inspected }))).toEqual(inspected);
  });

  it('is undefined when the user gave the size', () => {
    expect(inspectedOf(buildVolume(request))).toBeUndefined();
  });
});

describe('populationOf', () => {
  it('returns the content of the mark', () => {
    const { metadata } = populatedPatch(aPopulation, { imported: 'yes' }) as {
      metadata: { annotations: Record<string, string> };
    };
    expect(metadata.annotations['imported']).toBe('yes');
    expect(populationOf(aVolume({ metadata: { name: 'a', annotations: metadata.annotations } }))).toEqual(aPopulation);
  });

  it.each([undefined, '', '{}', 'no JSON', '{"inspection":{"format":"floppy"}}'])(
    'treats %j as not populated',
    (mark) => {
      const marks = mark === undefined ? {} : { 'bullion.dev/populated': mark };
      expect(populationOf(aVolume({ metadata: { name: 'a', annotations: marks } }))).toBeUndefined();
    },
  );
});

it('sets the labels that describe how to run the volume, and no others of its image', () => {
  const preference = { 'instancetype.kubevirt.io/default-preference': 'fedora' };
  const labels = { ...preference, 'cdi.kubevirt.io/dataImportCron': 'theirs', 'kubevirt.io/vm': 'theirs' };
  const population = { inspection: { format: 'raw', compression: 'none', labels }, digests: {} } as const;
  expect(populatedPatch(population, {})).toMatchObject({ metadata: { labels: preference } });
  expect(populatedPatch(aPopulation, {})).not.toHaveProperty('metadata.labels');
});
