// What limits refuse at the door, what they hold back later, and what two objects that are created at once may take.
import { beforeEach, describe, expect, it } from 'vitest';
import { createApp } from '#functions/validate/app.ts';
import type { SignatureRule } from '#shared/api/bullion/verify.ts';
import { whyUnusable } from '#shared/golden/signature/keys.ts';
import { type TenantLimitSpec, type TenantLimit, tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import {
  type Job,
  configMaps,
  jobs,
  namespaces,
  persistentVolumeClaims,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { leases } from '#shared/api/foreign/kubernetes.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import {
  annotations,
  deletedOwner,
  labels,
  ownAccountPrefix,
  systemNamespace,
  tenantLimits,
} from '#shared/api/names.ts';
import { apiVersionOf, childMetadata, refOf } from '#shared/api/object.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { sweep } from '#shared/resources/sweep.ts';
import { createLimitsLook } from '#shared/resources/tenant-limit/applied.ts';
import { createUsageReport } from '#shared/resources/tenant-limit/report.ts';
import { InvalidInput, Unavailable } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Draft, ask, withAccess } from '#test/support/admission.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import type { JobSource } from '#shared/populate/source.ts';
import { aStorageClass, imageRef, testSettings } from '#test/support/builders.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import { ecKey, pemOf } from '#test/support/cosign.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';

const namespace = 'team-a';
const defaultMark = { 'storageclass.kubernetes.io/is-default-class': 'true' };
let deps: ReconcileDeps & { readonly kube: MemoryKube };
let kube: MemoryKube;
let seeded = 0;
beforeEach(() => {
  deps = createTestReconciler();
  kube = deps.kube;
  deps = { ...deps, limits: createLimitsLook(kube, () => Number.POSITIVE_INFINITY) };
  seeded = 0;
  kube.seed(storageClasses, aStorageClass('standard', { metadata: { name: 'standard', annotations: defaultMark } }));
  for (const [name, team] of [
    [namespace, 'a'],
    ['team-b', 'b'],
  ] as const)
    kube.seed(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { team } } });
});

const limit = (spec: Omit<TenantLimitSpec, 'namespaceSelector'>, name = 'limit'): TenantLimit =>
  kube.seed(tenantLimitKind.type, {
    apiVersion: apiVersionOf(tenantLimitKind.type),
    kind: 'TenantLimit',
    metadata: { name },
    spec: { namespaceSelector: { matchLabels: { team: 'a' } }, ...spec },
  });

const url = 'https://images.example/disk.img';
const aVolume = (name: string, over: Partial<DataVolume['spec']> = {}, at = namespace): DataVolume => ({
  apiVersion: apiVersionOf(dataVolumes),
  kind: 'DataVolume',
  metadata: { name, namespace: at, annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' } },
  spec: {
    source: { http: { url } },
    storage: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } },
    ...over,
  },
});
const sized = (storage: string, storageClassName?: string): Partial<DataVolume['spec']> => ({
  storage: { resources: { requests: { storage } }, ...(storageClassName === undefined ? {} : { storageClassName }) },
});
const anImage = (name: string): Draft => ({
  apiVersion: apiVersionOf(hyperCloudImageKind.type),
  kind: 'VirtualMachineImage',
  metadata: { name, namespace },
  spec: { source: { http: url }, pvc: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } } },
});
const seed = (volume: DataVolume): DataVolume => {
  seeded += 1;
  return kube.seed(dataVolumes, { ...volume, metadata: { ...volume.metadata, uid: `uid-${seeded}` } });
};

const send = async (object: unknown, over: { readonly oldObject?: unknown; readonly username?: string } = {}) => {
  const app = createApp({ kube: withAccess(kube, () => true), log: silentLogger });
  const { allowed, status } = await ask(app, '/validate', { object: object as Draft, ...(over as object) });
  return allowed ? 'allowed' : (status?.message ?? '');
};
const pass = async (volume: DataVolume) => {
  await reconcile(deps, refOf(volume), { which: 'all' });
  const found = await kube.get(dataVolumes, { namespace: volume.metadata.namespace, name: volume.metadata.name });
  const ready = found?.status?.conditions?.find(({ type }) => type === 'Ready' || type === 'Running');
  return { found, detail: JSON.stringify(found?.status ?? {}), ready };
};
const jobsOf = (): readonly Job[] => kube.all(jobs);

describe('at the door', () => {
  it.each<[what: string, spec: Omit<TenantLimitSpec, 'namespaceSelector'>, object: () => unknown, says: RegExp]>([
    [
      'another volume',
      { quota: { volumes: 1 } },
      () => aVolume('new'),
      /TenantLimit limit limits the volumes of this namespace to 1, and it has 1: delete/,
    ],
    ['an image, which is no volume', { quota: { volumes: 1 } }, () => anImage('new'), /^allowed$/],
    [
      'an image',
      { quota: { images: 0 } },
      () => anImage('new'),
      /limits the images of this namespace to 0, and it has 0/,
    ],
    [
      'more storage',
      { quota: { storage: '2Gi' } },
      () => aVolume('new', sized('1025Mi', 'local')),
      /storage of this namespace to 2Gi, of which 1Gi is used, and this one takes 1025Mi/,
    ],
    ['all that is left', { quota: { storage: '2Gi' } }, () => aVolume('new'), /^allowed$/],
    [
      'storage of a class',
      { quota: { storageClasses: [{ name: 'fast', storage: '1Gi' }] } },
      () => aVolume('new', sized('2Gi', 'fast')),
      /the storage of class fast of this namespace to 1Gi, of which 0 is used/,
    ],
    [
      'storage of another class',
      { quota: { storageClasses: [{ name: 'fast', storage: '1Gi' }] } },
      () => aVolume('new', sized('2Gi', 'local')),
      /^allowed$/,
    ],
    [
      'a class',
      { storageClasses: { allow: ['slow'], message: 'fast is for databases' } },
      () => aVolume('new', sized('1Gi', 'fast')),
      /storage class fast is not allowed by TenantLimit limit, which allows slow: fast is for databases/,
    ],
    [
      'the default class',
      { storageClasses: { allow: ['slow'] } },
      () => aVolume('new', sized('1Gi')),
      /storage class standard is not allowed/,
    ],
    [
      'a host',
      { sources: { allow: [{ host: '*.corp.example' }], message: 'use our mirror' } },
      () => aVolume('new'),
      /https:\/\/images\.example\/disk\.img must not be used as a source: TenantLimit limit does not allow it; it allows \*\.corp\.example: use our mirror/,
    ],
    [
      'a denied host',
      { sources: { deny: [{ host: 'images.example', message: 'it is slow' }] } },
      () => anImage('new'),
      /TenantLimit limit denies it: it is slow/,
    ],
    [
      'a registry',
      { sources: { allow: [{ registry: 'quay.io/containerdisks' }] } },
      () => aVolume('new', { source: { registry: { url: 'docker://quay.io/other/disk' } } }),
      /quay\.io\/other\/disk must not be used/,
    ],
    [
      'an image of an allowed registry',
      { sources: { allow: [{ registry: 'quay.io/containerdisks' }] } },
      () => aVolume('new', { source: { registry: { url: 'docker://quay.io/containerdisks/fedora:40' } } }),
      /^allowed$/,
    ],
    [
      'a registry by its API',
      { sources: { deny: [{ registry: 'quay.io/other' }] } },
      () => aVolume('new', { source: { http: { url: 'https://quay.io/v2/other/blobs/x' } } }),
      /denies it/,
    ],
    [
      'a bucket',
      { sources: { allow: [{ bucket: 'mine', store: 's3.example' }] } },
      () => aVolume('new', { source: { s3: { url: 'https://s3.example/theirs/a' } } }),
      /must not be used/,
    ],
    [
      'an object of an allowed bucket',
      { sources: { allow: [{ bucket: 'mine', store: 's3.example' }] } },
      () => aVolume('new', { source: { s3: { url: 'https://s3.example/mine/a' } } }),
      /^allowed$/,
    ],
    [
      'a registry by another name of it',
      { sources: { deny: [{ host: 'docker.io' }] } },
      () => aVolume('new', { source: { registry: { url: 'docker://index.docker.io/library/fedora' } } }),
      /denies it/,
    ],
    [
      'a registry by its name in capitals and its own port',
      { sources: { deny: [{ registry: 'docker.io' }] } },
      () => aVolume('new', { source: { registry: { url: 'docker://Docker.io:443/library/fedora' } } }),
      /denies it/,
    ],
    [
      'an official image by its short name',
      { sources: { deny: [{ registry: 'docker.io/fedora' }] } },
      () => aVolume('new', { source: { registry: { url: 'docker://docker.io/fedora:40' } } }),
      /denies it/,
    ],
    [
      'an address',
      { sources: { deny: [{ addresses: '10.0.0.0/8' }] } },
      () => aVolume('new', { source: { http: { url: 'http://0x0a.1/a' } } }),
      /denies it/,
    ],
    [
      'an upload',
      { sources: { uploads: 'Deny' } },
      () => aVolume('new', { source: { upload: {} } }),
      /does not allow uploads/,
    ],
    [
      'a clone, which has no source elsewhere',
      { sources: { allow: [] } },
      () => aVolume('new', { source: { pvc: { namespace, name: 'old' } } }),
      /^allowed$/,
    ],
  ])('says no to %s only if a limit does: %o', async (_what, spec, object, says) => {
    limit(spec);
    seed(aVolume('old'));
    expect(await send(object())).toMatch(says);
  });

  it('refuses a cron that follows what is not allowed', async () => {
    limit({ sources: { allow: [{ host: 'images.example' }] } });
    const cron = (http: object) => ({
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataImportCron',
      metadata: { name: 'cron', namespace },
      spec: { schedule: '', managedDataSource: 'fedora', source: { http } },
    });
    expect(await send(cron({ url }))).toBe('allowed');
    expect(await send(cron({ url, checksumURL: 'https://evil.test/SHA256SUMS' }))).toMatch(
      /evil\.test.*must not be used/,
    );
  });

  it.each([
    'https://store.example/team-a/disk',
    'https://store.example//team-a/disk',
    'https://store.example/team%2Da/disk',
    'https://store.example/team-a/dir%2Fdisk',
    'https://store.example/TEAM-A/disk',
    'https://team-a.store.example/disk',
  ])('asks for a signature of %s, in whatever notation', async (http) => {
    const signature = { cosign: { keys: { configMap: 'release-keys' } } };
    limit({ sources: { signed: [{ bucket: 'team-a', store: 'store.example', signature }] } });
    expect(await send(aVolume('new', { source: { http: { url: http } } }))).toMatch(/asks for a signature on/);
    const elsewhere = 'https://store.example/team-b/disk';
    expect(await send(aVolume('new', { source: { http: { url: elsewhere } } }))).toBe('allowed');
  });

  it('counts what deleted images have left, but for the image that takes it back', async () => {
    limit({ quota: { storage: '3Gi' } });
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { ...childMetadata({ ...refOf(anImage('old') as never), uid: deletedOwner }, 'volume', 'left') },
      spec: { storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '3Gi' } } },
    });
    expect(await send(aVolume('new'))).toMatch(/to 3Gi, of which 3Gi is used, and this one takes 1Gi/);
    const back = anImage('old');
    const marks = { annotations: { [annotations.undelete]: 'left' } };
    expect(await send({ ...back, metadata: { ...back.metadata, ...marks } })).toBe('allowed');
  });

  it('does not concern other namespaces, nor what Bullion makes, nor what is there', async () => {
    limit({ quota: { volumes: 0 }, storageClasses: { allow: [] }, sources: { allow: [] } });
    const old = seed(aVolume('old'));
    expect(await send(aVolume('new', {}, 'team-b'))).toBe('allowed');
    expect(await send(aVolume('new'), { username: `${ownAccountPrefix}initialize` })).toBe('allowed');
    const labelled = { ...old, metadata: { ...old.metadata, labels: { a: 'b' } } };
    expect(await send(labelled, { oldObject: old })).toBe('allowed');
  });

  it('is not passed by the marks of a golden volume', async () => {
    limit({ quota: { images: 0, volumes: 0 } });
    const marks = {
      labels: { [labels.ownerUid]: 'uid-1', [labels.ownerKind]: 'VirtualMachineImage.hypercloud.tmaxanc.com' },
      annotations: { [annotations.ownerName]: 'mine', [annotations.ownerNamespace]: namespace },
    };
    for (const object of [anImage('new'), aVolume('new')])
      expect(await send({ ...object, metadata: { ...object.metadata, ...marks } })).toMatch(
        /TenantLimit|only by Bullion/,
      );
  });

  it('takes every limit into account, and reports all of them', async () => {
    limit({ quota: { volumes: 0 } }, 'one');
    limit({ storageClasses: { allow: [] } }, 'two');
    expect(await send(aVolume('new'))).toMatch(
      /storage class local is not allowed by TenantLimit two.*TenantLimit one limits the/s,
    );
  });
});

describe('a volume that got past the door', () => {
  it('waits, and begins once there is room', async () => {
    const first = seed(aVolume('first'));
    await pass(first);
    limit({ quota: { volumes: 1 }, message: 'ask #platform' });
    const second = seed(aVolume('second'));
    const before = jobsOf().length;
    expect((await pass(second)).detail).toMatch(
      /QuotaReached.*limits the volumes of this namespace to 1, and it has 1.*ask #platform/,
    );
    expect(jobsOf()).toHaveLength(before);
    await kube.delete(dataVolumes, { namespace, name: 'first' });
    for (const { metadata } of kube.all(persistentVolumeClaims)) await kube.delete(persistentVolumeClaims, metadata);
    expect((await pass(second)).detail).not.toMatch(/QuotaReached/);
  });

  it('that was begun continues, whatever the limits are then', async () => {
    const volume = seed(aVolume('old'));
    await pass(volume);
    limit({ quota: { volumes: 0 }, storageClasses: { allow: [] } });
    expect((await pass(volume)).detail).not.toMatch(/QuotaReached|NotAllowed/);
  });

  it('takes no more storage than there is, which is known once its source was looked at', async () => {
    limit({ quota: { storage: '100Mi' } });
    const volume = seed(aVolume('big'));
    expect((await pass(volume)).detail).toMatch(/QuotaReached.*to 100Mi, of which 0 is used, and this one takes/);
    expect(kube.all(persistentVolumeClaims)).toEqual([]);
  });

  it.each([
    ['SourceNotAllowed', { sources: { allow: [] } }],
    ['StorageClassNotAllowed', { storageClasses: { allow: [] } }],
  ])('waits with %s', async (reason, spec) => {
    limit(spec);
    const volume = seed(aVolume('one'));
    expect((await pass(volume)).detail).toContain(reason);
    expect([jobsOf(), kube.all(persistentVolumeClaims)]).toEqual([[], []]);
  });

  it('begins once its source is signed, by the keys of the administrator and for these bytes', async () => {
    const cosign = { keys: { configMap: 'release-keys' } };
    limit({ sources: { signed: [{ registry: 'quay.io/disks', signature: { cosign } }] } });
    const digest = `sha256:${'a'.repeat(64)}`;
    const from = (text: string) => ({ source: { registry: { url: `docker://${text}` } } });
    expect(await send(aVolume('new', from('quay.io/disks/fedora:40')))).toMatch(
      /asks for a signature on quay.io\/disks\/fedora, and therefore for its digest/,
    );
    expect(await send(aVolume('new', from('quay.io/other/fedora:40')))).toBe('allowed');
    const pinned = from(`quay.io/disks/fedora@${digest}`);
    expect(await send(aVolume('new', pinned))).toBe('allowed');
    const volume = seed(aVolume('one', pinned));
    expect((await pass(volume)).detail).toMatch(/SignatureRequired.*verified within a minute/);
    const asked: unknown[] = [];
    const answering = (is: 'refused' | 'verified'): void => {
      deps = {
        ...deps,
        verify: async (request) => {
          asked.push([request.keysNamespace, request.namespace, request.digest, request.rule]);
          const said = { message: 'nobody signed it', digest, kind: 'cosign', by: 'key' };
          return is === 'refused' ? { is, reason: 'Unsigned', ...said } : { is, ...said };
        },
      };
    };
    answering('refused');
    expect((await pass(volume)).detail).toMatch(/SignatureRequired.*nobody signed it/);
    expect(asked).toEqual([[systemNamespace, namespace, digest, { cosign }]]);
    expect(jobsOf()).toEqual([]);
    answering('verified');
    expect((await pass(volume)).detail).not.toMatch(/SignatureRequired/);
  });

  it('tells its Job which servers it may ask', async () => {
    limit({ sources: { allow: [{ host: 'images.example' }], deny: [{ addresses: '10.0.0.0/8' }] } });
    await pass(seed(aVolume('one')));
    const [job] = jobsOf();
    expect(JSON.stringify(job)).toMatch(/reach/);
  });
});

describe('the servers of a Job', () => {
  const places = { host: 'images.example' };
  const reach = { denied: [], allowed: [{ places: [places], because: 'no' }] };
  const objectStore = { endpoint: 'https://store.example:9000', region: 'r', pathStyle: true };
  it.each<[what: string, source: JobSource, beside: readonly string[]]>([
    ['a file', { type: 'http', url }, []],
    [
      'a registry, which is asked at any path',
      { type: 'registry', url: 'docker://docker.io/a/b:1' },
      ['registry-1.docker.io'],
    ],
    [
      "the installation's store, wherever it is",
      { type: 'object', bucket: 'b', key: 'k' },
      ['store.example:9000', 'b.store.example:9000'],
    ],
  ])('are those that are allowed, and for %s', (_what, source, beside) => {
    const job = buildTransferJob(
      { mode: 'inspect', owner: imageRef, source, retries: 0 },
      { ...testSettings, reach, objectStore },
    );
    const text = job.spec.template.spec.containers[0]?.env?.find(({ name }) => name === 'BULLION_TRANSFER')?.value;
    expect(JSON.parse(text ?? '')).toMatchObject({
      reach: { allowed: [{ places: [places, ...beside.map((host) => ({ host }))] }] },
    });
  });
});

describe('a limit', () => {
  const ready = async () => {
    await sweep({ ...deps, whyUnusable });
    const [found] = kube.all(tenantLimitKind.type);
    const { status, reason, message } = found?.status?.conditions?.find(({ type }) => type === 'Ready') ?? {};
    return `${status} ${reason}: ${message}`;
  };
  const keysOf = (name: string, text: string) => {
    const metadata = { namespace: systemNamespace, name };
    kube.seed(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { keys: text } });
  };
  const keys = (configMap: string) => ({ keys: { configMap } });
  const minisignKey = Buffer.concat([Buffer.from('Ed'), Buffer.alloc(40, 1)]).toString('base64');

  it('is ready while the keys that it names are there', async () => {
    limit({
      sources: {
        signed: [
          { registry: 'quay.io/disks', signature: { cosign: keys('release-keys') } },
          { host: 'images.example', signature: { minisign: keys('vendor-keys') } },
        ],
      },
    });
    keysOf('vendor-keys', minisignKey);
    expect(await ready()).toBe(
      'False KeysNotFound: ConfigMap release-keys does not exist in namespace bullion-system: create it there with the public keys. Until then, what must be signed with them waits',
    );
    keysOf('release-keys', pemOf(ecKey()));
    expect(await ready()).toMatch(/^True Ready: /);
    const before = kube.all(tenantLimitKind.type);
    expect(await ready()).toMatch(/^True Ready: /);
    expect(kube.all(tenantLimitKind.type)).toEqual(before);
    await kube.delete(configMaps, { namespace: systemNamespace, name: 'vendor-keys' });
    expect(await ready()).toMatch(/^False KeysNotFound: ConfigMap vendor-keys /);
  });

  it.each<[string, SignatureRule, RegExp]>([
    ['cosign', { cosign: keys('rubbish') }, /the keys of ConfigMap rubbish hold no PEM block/],
    ['cosign, written in it', { cosign: { keys: { inline: ['rubbish'] } } }, /the keys in cosign.keys.inline hold no/],
    [
      'authorities',
      { cosign: { identities: [{ issuer: 'https://a', subject: 'b' }], trustRoot: { configMap: 'rubbish' } } },
      /rubbish/,
    ],
    ['gpg', { gpg: keys('rubbish') }, /ConfigMap rubbish holds something other than an OpenPGP public key/],
    [
      'minisign',
      { minisign: keys('rubbish') },
      /ConfigMap rubbish holds something other than a public key of minisign/,
    ],
  ])('is not ready while its keys hold something else: %s', async (_what, signature, says) => {
    keysOf('rubbish', 'rubbish');
    limit({ sources: { signed: [{ signature }] } });
    const said = await ready();
    expect(said).toMatch(/^False KeysNotFound: .*Until then, what must be signed with them waits$/);
    expect(said).toMatch(says);
  });
});

describe('two that are created at once', () => {
  it('do not both begin, though each pass sees the other only afterwards', async () => {
    limit({ quota: { volumes: 1 } });
    const [one, two] = [seed(aVolume('one')), seed(aVolume('two'))];
    // The second pass runs as a whole while the first one is about to record itself.
    let isFirst = true;
    const slow = {
      ...kube,
      create: async (...[type, object, options]: Parameters<typeof kube.create>) => {
        if (type.plural === leases.plural && object.metadata.name.startsWith('tenant-limits-') && isFirst) {
          isFirst = false;
          await pass(two);
        }
        return kube.create(type, object, options);
      },
    } as typeof kube;
    await reconcile({ ...deps, kube: slow, limits: createLimitsLook(kube) }, refOf(one), { which: 'all' });
    const states = await Promise.all(
      ['one', 'two'].map(async (name) => JSON.stringify((await kube.get(dataVolumes, { namespace, name }))?.status)),
    );
    expect(states.map((text) => text.includes('QuotaReached'))).toEqual([true, false]);
  });
});

describe('a pass that is killed at any of its calls', () => {
  const verbs = ['get', 'list', 'create', 'replace', 'mergePatch', 'delete'] as const;
  /** Fails from call `last` on. */
  const dying = (last: number) => {
    let calls = 0;
    const counted = Object.fromEntries(
      verbs.map((verb) => [
        verb,
        (...args: never[]) => {
          calls += 1;
          if (calls >= last) throw new Unavailable('killed');
          return (kube[verb] as (...all: never[]) => unknown)(...args);
        },
      ]),
    );
    return { kube: { ...kube, ...counted } as typeof kube, made: () => calls };
  };
  /** Claims of volumes: temporary ones have other names. */
  const begunOf = () => kube.all(persistentVolumeClaims).filter(({ metadata }) => /^v\d$/.test(metadata.name)).length;

  it('lets no more begin than there is room for, and no fewer', async () => {
    limit({ quota: { volumes: 2 } });
    const volumes = ['v1', 'v2', 'v3', 'v4'].map((name) => seed(aVolume(name, { source: { blank: {} } })));
    let most = 0;
    for (let last = 1; last <= 40; last += 1) {
      const [volume, ...others] = volumes.map((_, index) => volumes[(index + last) % volumes.length]!);
      const killed = dying(last);
      const around = { ...deps, kube: killed.kube, limits: createLimitsLook(killed.kube) };
      await reconcile(around, refOf(volume!), { which: 'all' }).catch((error: unknown) => {
        if (!(error instanceof Unavailable)) throw error;
      });
      most = Math.max(most, killed.made());
      expect(begunOf()).toBeLessThanOrEqual(2);
      if (last % 3 === 0) await pass(others[last % others.length]!);
      expect(begunOf()).toBeLessThanOrEqual(2);
    }
    expect(most).toBeGreaterThan(5);
    for (const volume of volumes) await pass(volume);
    expect(begunOf()).toBe(2);
  });
});

describe('usage', () => {
  it('is in the status of the limit, and in a ConfigMap of the namespace alone', async () => {
    limit({ quota: { volumes: 1, storageClasses: [{ name: 'local', storage: '10Gi' }] } });
    seed(aVolume('one'));
    seed(aVolume('other', {}, 'team-b'));
    // The first one is overtaken by the pass that finds the limit new.
    for (let tick = 0; tick < 2; tick += 1) {
      const report = createUsageReport();
      await sweep(deps, { visit: report.visit });
      await report.write(deps);
    }
    const { status } = kube.all(tenantLimitKind.type)[0]!;
    expect(status).toMatchObject({
      namespaceCount: 1,
      reachedCount: 1,
      namespaces: [
        { namespace, images: 0, volumes: 1, storageClasses: [{ name: 'local', volumes: 1 }], reached: ['volumes'] },
      ],
      conditions: [{ type: 'Ready', status: 'True' }],
    });
    const told = kube.all(configMaps).filter(({ metadata }) => metadata.name === tenantLimits);
    expect(told.map(({ metadata }) => metadata.namespace)).toEqual([namespace]);
    expect(JSON.parse(told[0]?.data?.['limits'] ?? '')).toMatchObject([
      { name: 'limit', quota: { volumes: 1 }, used: { volumes: 1 } },
    ]);
    expect(told[0]?.data?.['limits']).not.toMatch(/team-b|namespaceSelector/);
  });

  const reported = async () => {
    const report = createUsageReport();
    await sweep(deps, { visit: report.visit });
    await report.write(deps);
    return kube.all(configMaps).filter(({ metadata }) => metadata.name === tenantLimits);
  };

  it('is told to other namespaces, whatever users of one do to their ConfigMap', async () => {
    kube.seed(tenantLimitKind.type, {
      apiVersion: apiVersionOf(tenantLimitKind.type),
      kind: 'TenantLimit',
      metadata: { name: 'all' },
      spec: { namespaceSelector: {}, quota: { volumes: 1 } },
    });
    const key = { namespace, name: tenantLimits };
    kube.seed(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: key,
      immutable: true,
      data: { limits: '[]', mine: 'x' },
    });
    // As an API server does.
    const strict = {
      ...kube,
      mergePatch: (async (...[of, which, ...rest]: Parameters<typeof kube.mergePatch>) => {
        const found = of.plural === configMaps.plural ? await kube.get(configMaps, which) : undefined;
        if (found?.immutable === true) throw new InvalidInput('field is immutable');
        return kube.mergePatch(of, which, ...rest);
      }) as typeof kube.mergePatch,
    };
    deps = { ...deps, kube: strict };
    for (let tick = 0; tick < 2; tick += 1) await reported();
    expect((await reported()).map(({ metadata, data }) => [metadata.namespace, Object.keys(data ?? {})])).toEqual([
      [namespace, ['limits']],
      ['team-b', ['limits']],
    ]);
    await kube.mergePatch(configMaps, key, { data: { mine: 'x' } });
    await reported();
    const writes = kube.calls.length;
    await reported();
    expect(kube.calls.slice(writes).filter(({ verb }) => verb !== 'get' && verb !== 'list')).toEqual([]);
  });

  it('is written for the others where one is refused', async () => {
    limit({ quota: { volumes: 1 } });
    kube.seed(tenantLimitKind.type, {
      apiVersion: apiVersionOf(tenantLimitKind.type),
      kind: 'TenantLimit',
      metadata: { name: 'other' },
      spec: { namespaceSelector: { matchLabels: { team: 'b' } }, quota: { volumes: 1 } },
    });
    await reported();
    for (const { metadata } of kube.all(configMaps)) await kube.delete(configMaps, metadata);
    kube.failNext({ verb: 'create', resource: 'configmaps' }, { error: new InvalidInput('too large'), when: 'before' });
    expect((await reported()).map(({ metadata }) => metadata.namespace)).toEqual(['team-b']);
  });
});
