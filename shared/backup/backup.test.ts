// What must hold for backups whatever targets and clusters do: each case runs on clusters in memory that share a store.
import { beforeEach, describe, expect, it } from 'vitest';
import { configMaps, jobs, kubeEvents, secrets, storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import { annotations, finalizers } from '#shared/api/names.ts';
import { type BackupImageObject, readImage } from '#shared/backup/image.ts';
import { lookThrough } from '#shared/backup/look.ts';
import { readMemory } from '#shared/backup/memory.ts';
import { parseMetadata, serializeMetadata } from '#shared/backup/metadata.ts';
import { syncImage } from '#shared/backup/sync.ts';
import { tickBackups } from '#shared/backup/tick.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import {
  type MemoryCluster,
  backedUp,
  conditionOf,
  createMemoryCluster,
  kept as keptIn,
  secretKey,
} from '#test/support/backup-world.ts';
import { aHarvesterImage, aHyperCloudImage, aStorageClass } from '#test/support/builders.ts';
import { type MemoryStore, createMemoryStore } from '#test/support/memory-store.ts';

const disk = 'd'.repeat(64);
const otherDisk = 'e'.repeat(64);
const key = 'harvester/vmimages/default-ubuntu/vmimage-metadata.yaml';

let store: MemoryStore;
let one: MemoryCluster;

const cluster = () => createMemoryCluster(new Map([['backups', store]]));
const wanted = (over: object = {}) => backedUp(aHyperCloudImage(), over);
const kept = (where: MemoryCluster, object: unknown = wanted(), of = disk) => keptIn(where, object, of);
/** Deletes as a user does: the object stays until its finalizers are gone. */
const userDeletes = async ({ kube, deps }: MemoryCluster, object: BackupImageObject) => {
  const type = kube.all<BackupImageObject>().find(({ metadata }) => metadata.uid === object.metadata.uid)!;
  await kube.delete(
    {
      group: type.apiVersion.split('/')[0]!,
      version: type.apiVersion.split('/')[1]!,
      kind: type.kind,
      plural: 'virtualmachineimages',
      namespaced: true,
    },
    { namespace: object.metadata.namespace, name: object.metadata.name },
  );
  await syncImage(deps, { ...object, ...object.metadata });
};
const metadataAt = (at: string) => {
  const parsed = parseMetadata(store.objects.get(at) ?? Buffer.alloc(0));
  return 'value' in parsed ? parsed.value : undefined;
};
const down = new Unavailable('503 SlowDown');
const denied = new S3Failure('Denied', `backups/${key}: the credentials are missing or not allowed to do this`);

beforeEach(() => {
  store = createMemoryStore();
  one = cluster();
  one.setTarget();
});

describe('an image that is kept', () => {
  it('is backed up with its bytes before the metadata that names them, and reports it', async () => {
    const image = one.ready(wanted());
    await one.tick();
    expect(conditionOf(await one.image(image), 'DataReady')).toMatchObject({ status: 'False', reason: 'BackingUp' });
    expect(store.objects.has(key)).toBe(false);
    one.finishJob(image, disk);
    await one.tick();
    const observed = await one.image(image);
    expect(conditionOf(observed, 'DataReady')).toMatchObject({ status: 'True', reason: 'Kept' });
    expect(conditionOf(observed, 'MetadataReady')).toMatchObject({ status: 'True', reason: 'Written' });
    expect(observed?.status?.backup).toMatchObject({
      object: key,
      disk,
      bytes: 1234,
      target: 'https://store.example/backups',
    });
    expect(metadataAt(key)).toMatchObject({
      image: { namespace: 'default', name: 'ubuntu', kind: 'VirtualMachineImage' },
      backend: 'csi',
      data: { kept: 'chunks', disk },
      children: { volume: 'ubuntu-image-pvc' },
      size: 1000,
      digests: { sha256: 'a'.repeat(64) },
    });
    expect(one.sent.map(({ type }) => type)).toEqual(['dev.bullion.backup.completed']);
    expect(one.kube.all(kubeEvents).map((event) => (event as { reason?: string }).reason)).toEqual([
      'DataBackedUp',
      'BackedUp',
    ]);
  });

  it('is written once, and again only when something differs', async () => {
    const image = await kept(one);
    const writes = () => store.calls.filter((call) => call.startsWith('write')).length;
    const before = writes();
    await one.tick(5);
    expect(writes()).toBe(before);
    one.kube.edit(
      {
        group: 'hypercloud.tmaxanc.com',
        version: 'v1alpha1',
        kind: 'VirtualMachineImage',
        plural: 'virtualmachineimages',
        namespaced: true,
      },
      image.metadata as never,
      (edited) => {
        edited.metadata.labels = { os: 'ubuntu' };
      },
    );
    await one.tick();
    expect(writes()).toBe(before + 1);
    expect(metadataAt(key)?.labels).toEqual({ os: 'ubuntu' });
    // The bytes are the same: no second Job.
    expect(one.kube.all(jobs)).toHaveLength(1);
  });

  it('reports that no target is configured, and is backed up once there is one', async () => {
    const other = cluster();
    const image = other.ready(wanted());
    await other.tick();
    expect(conditionOf(await other.image(image), 'MetadataReady')).toMatchObject({
      reason: 'NoBackupTarget',
      message: expect.stringContaining('backup-target'),
    });
    // Without a backup there is no finalizer.
    expect((await other.image(image))?.metadata.finalizers ?? []).not.toContain(finalizers.backup);
    other.setTarget();
    await other.tick();
    other.finishJob(image, disk);
    await other.tick();
    expect(conditionOf(await other.image(image), 'MetadataReady')?.status).toBe('True');
  });

  it('is not reported as backed up after a failed write, and recovers without a second copy', async () => {
    const image = one.ready(wanted());
    await one.tick();
    one.finishJob(image, disk);
    store.fault = (verb, at) => (verb === 'write' && at === key ? denied : undefined);
    await one.tick();
    const failed = await one.image(image);
    expect(conditionOf(failed, 'MetadataReady')).toMatchObject({
      status: 'False',
      reason: 'BackupTargetUnavailable',
      message: expect.stringContaining('not allowed'),
    });
    store.fault = () => undefined;
    await one.tick();
    expect(conditionOf(await one.image(image), 'MetadataReady')?.status).toBe('True');
    expect(one.kube.all(jobs)).toHaveLength(1);
  });

  it.each([
    ['torn', 'version: 1\nimage:\n  apiVersion: hypercloud'],
    ['empty', ''],
    ['garbage', '\u0000\u0001<html>'],
  ])('replaces metadata that is %s', async (_, text) => {
    store.objects.set(key, Buffer.from(text));
    await kept(one);
    expect(metadataAt(key)?.data).toEqual({ kept: 'chunks', disk });
  });

  it('leaves metadata of a later release unchanged, and is stored next to it', async () => {
    store.objects.set(key, Buffer.from('version: 2\n'));
    const image = await kept(one);
    expect(store.objects.get(key)?.toString()).toBe('version: 2\n');
    expect((await one.image(image))?.status?.backup?.object).not.toBe(key);
  });

  it('distinguishes two images that would share a folder', async () => {
    const a = await kept(one, { ...wanted(), metadata: { namespace: 'default', name: 'a-b' } });
    one.kube.seed(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'backup-target', namespace: 'default-a' },
    });
    const b = await kept(one, { ...wanted(), metadata: { namespace: 'default-a', name: 'b' } }, otherDisk);
    const [first, second] = [(await one.image(a))?.status?.backup, (await one.image(b))?.status?.backup];
    expect(first?.object).toBe('harvester/vmimages/default-a-b/vmimage-metadata.yaml');
    expect(second?.object).toMatch(/^harvester\/vmimages\/default-a-b-[0-9a-f]{8}\/vmimage-metadata.yaml$/);
    expect(metadataAt(first!.object!)?.image.name).toBe('a-b');
    expect(metadataAt(second!.object!)?.image.name).toBe('b');
  });

  it('is retried after a delay when its backup failed, and reports the reason until then', async () => {
    const image = one.ready(wanted());
    await one.tick();
    one.failJob(image, 'the object store does not take the export: 503');
    await one.tick();
    expect(conditionOf(await one.image(image), 'DataReady')).toMatchObject({
      status: 'False',
      reason: 'TargetFailed',
      message: expect.stringMatching(/503.*retrying after/),
    });
    one.time.clock += 600_000;
    await one.tick(2);
    expect(conditionOf(await one.image(image), 'DataReady')).toMatchObject({ reason: 'BackingUp' });
  });

  it('is backed up because of a VM backup, or of a backup by Longhorn', async () => {
    const image = one.ready(aHarvesterImage());
    const type = {
      group: 'harvesterhci.io',
      version: 'v1beta1',
      kind: 'VirtualMachineBackup',
      plural: 'virtualmachinebackups',
      namespaced: true,
    };
    const claim = { metadata: { annotations: { 'harvesterhci.io/imageId': 'default/image-leap' } } };
    one.kube.seed(type, {
      apiVersion: 'harvesterhci.io/v1beta1',
      kind: 'VirtualMachineBackup',
      metadata: { name: 'vm-1', namespace: 'default' },
      status: { readyToUse: true, volumeBackups: [{ persistentVolumeClaim: claim }] },
    } as never);
    await one.tick();
    expect((await one.image(image))?.metadata.annotations?.[annotations.backup]).toBe('true');
    one.finishJob(image, disk);
    await one.tick();
    expect(metadataAt('harvester/vmimages/default-image-leap/vmimage-metadata.yaml')?.displayName).toBe('leap');
  });

  it('is backed up when Longhorn has backed up its data, and reports where', async () => {
    const image = one.ready({ ...aHarvesterImage(), spec: { ...aHarvesterImage().spec, backend: 'backingimage' } });
    one.kube.edit(harvesterType as never, image.metadata as never, (edited) => {
      const { status } = edited as unknown as { status: { children: object } };
      status.children = { backingImage: 'vmi-7', storageClass: 'lh-7' };
    });
    const annotations_ = { 'harvesterhci.io/imageId': 'default/image-leap' };
    one.kube.seed(backingImages, {
      apiVersion: 'longhorn.io/v1beta2',
      kind: 'BackingImage',
      metadata: { name: 'vmi-7', namespace: 'longhorn-system', annotations: annotations_ },
    } as never);
    const url = 's3://b@r/?backingImage=vmi-7';
    one.kube.seed(bbiType, {
      apiVersion: 'longhorn.io/v1beta2',
      kind: 'BackupBackingImage',
      metadata: { name: 'vmi-7', namespace: 'longhorn-system' },
      status: { state: 'InProgress', backingImage: 'vmi-7' },
    } as never);
    await one.tick();
    expect((await one.image(image))?.metadata.annotations?.[annotations.backup]).toBeUndefined();
    one.kube.edit(bbiType, { name: 'vmi-7', namespace: 'longhorn-system' }, (edited) => {
      (edited as { status?: object }).status = { state: 'Completed', backingImage: 'vmi-7', url, checksum: 'c0ffee' };
    });
    await one.tick();
    expect(metadataAt('harvester/vmimages/default-image-leap/vmimage-metadata.yaml')).toMatchObject({
      children: { backingImage: 'vmi-7', storageClass: 'lh-7' },
      data: { kept: 'by-storage', url, checksum: 'c0ffee' },
    });
    expect(one.kube.all(jobs)).toEqual([]);
  });

  it('writes no credential', async () => {
    const image = await kept(one, wanted({ source: { http: 'https://me:pa55word@images.example/a.img?token=t0ken' } }));
    const told = JSON.stringify([one.kube.all().filter(({ kind }) => kind !== 'Secret'), one.sent]);
    expect(told).not.toContain(secretKey);
    const remote = [...store.objects.values()].join('\n');
    for (const secret of [secretKey, 'pa55word', 't0ken']) expect(remote).not.toContain(secret);
    expect((await one.image(image))?.status?.backup?.object).toBe(key);
  });
});

describe('a target that is emptied, changed or misconfigured for a while', () => {
  it.each([
    ['cleared', {}],
    ['another one', { type: 's3', endpoint: 'https://store.example', bucketName: 'others' }],
    ['wrong', { type: 's3', endpoint: 'no url', bucketName: 'backups' }],
  ])('loses nothing remote: %s', async (_, fields) => {
    const image = await kept(one);
    const before = new Map(store.objects);
    one.setTarget(fields);
    await one.tick(3);
    expect(new Map(store.objects)).toEqual(before);
    expect(conditionOf(await one.image(image), 'MetadataReady')?.status).toBe('False');
    one.setTarget();
    await one.tick(2);
    expect(conditionOf(await one.image(image), 'MetadataReady')?.status).toBe('True');
    expect(new Map(store.objects)).toEqual(before);
    expect(one.kube.all(jobs)).toHaveLength(1);
  });

  it('is not changed by an image that is deleted meanwhile, and does not delay the deletion', async () => {
    const image = await kept(one);
    const before = new Map(store.objects);
    one.setTarget({});
    await userDeletes(one, image);
    expect(await one.image(image)).toBeUndefined();
    expect(new Map(store.objects)).toEqual(before);
  });
});

describe('an image that its user deletes', () => {
  it('is removed from the target, and is not restored', async () => {
    const image = await kept(one);
    await userDeletes(one, image);
    expect(await one.image(image)).toBeUndefined();
    expect(store.objects.has(key)).toBe(false);
    await one.tick(3);
    expect(await one.image(image)).toBeUndefined();
  });

  it('is deleted at once while the target is down; the target records the deletion later', async () => {
    const image = await kept(one);
    store.fault = () => down;
    await userDeletes(one, image);
    expect(await one.image(image)).toBeUndefined();
    await one.tick(2);
    store.fault = () => undefined;
    await one.tick(2);
    expect(store.objects.has(key)).toBe(false);
    expect(await one.image(image)).toBeUndefined();
    expect((await readMemory(one.deps)).deleted).toMatchObject([{ isNoted: true }]);
  });

  it('is not restored when its cluster can no longer write to the target', async () => {
    const image = await kept(one);
    store.fault = (verb) => (verb === 'write' || verb === 'remove' ? denied : undefined);
    await userDeletes(one, image);
    await one.tick(3);
    expect(store.objects.has(key)).toBe(true);
    expect(await one.image(image)).toBeUndefined();
  });

  it('can be created again, and is backed up again', async () => {
    await userDeletes(one, await kept(one));
    const again = await kept(one, wanted(), otherDisk);
    expect(metadataAt(key)?.image.uid).toBe(again.metadata.uid);
    const two = cluster();
    two.setTarget();
    await two.tick();
    expect(await two.image(again)).toBeDefined();
  });

  it('that was restored is not restored again, and its first cluster keeps its own (harvester#8292)', async () => {
    const image = await kept(one);
    const two = cluster();
    two.setTarget();
    await two.tick();
    const restored = (await two.image(image))!;
    await userDeletes(two, restored);
    await two.tick(3);
    expect(await two.image(image)).toBeUndefined();
    expect(metadataAt(key)?.image.uid).toBe(image.metadata.uid);
    const three = cluster();
    three.setTarget();
    await three.tick();
    expect(await three.image(image)).toBeDefined();
  });
});

describe('a target that hangs', () => {
  it('is eventually reported on every image, although no tick has time for all of them', async () => {
    const images = Array.from({ length: 30 }, (_, index) => {
      const base = wanted();
      return one.ready({ ...base, metadata: { namespace: 'default', name: `image-${index}` } });
    });
    for (let minute = 0; minute < 12; minute += 1) {
      const deadline = new AbortController();
      let asked = 0;
      store.fault = () => {
        // The first ones take all the time there is.
        if ((asked += 1) >= 8) deadline.abort(new Error('the deadline passed'));
        return new Unavailable('no answer within 10 s');
      };
      one.time.clock += 60_000;
      await tickBackups(one.deps, deadline.signal).catch(() => {});
    }
    const told = await Promise.all(
      images.map(async (image) => conditionOf(await one.image(image), 'DataReady')?.reason),
    );
    expect(new Set(told)).toEqual(new Set(['BackupTargetUnavailable']));
  });
});

describe('two clusters with one target', () => {
  it('keep images of the same name with different bytes side by side', async () => {
    const image = await kept(one);
    const two = cluster();
    const other = two.ready(wanted(), 'b'.repeat(64));
    two.setTarget();
    await two.tick();
    two.finishJob(other, otherDisk);
    await two.tick(2);
    expect(metadataAt(key)?.image.uid).toBe(image.metadata.uid);
    const second = (await two.image(other))?.status?.backup?.object;
    expect(second).not.toBe(key);
    expect(metadataAt(second!)?.data).toEqual({ kept: 'chunks', disk: otherDisk });
    // And each names the other, with which it conflicts.
    expect(conditionOf(await two.image(other), 'RestoreConflict')).toMatchObject({
      status: 'True',
      message: expect.stringMatching(new RegExp(`${other.metadata.uid}.*${image.metadata.uid}`)),
    });
  });

  it('keep what the first one wrote of an image that the second restored', async () => {
    const image = await kept(one);
    const two = cluster();
    two.setTarget();
    await two.tick();
    const restored = (await two.image(image))!;
    two.ready(restored);
    const before = store.objects.get(key)?.toString();
    await two.tick(2);
    expect(conditionOf(await two.image(image), 'MetadataReady')?.status).toBe('True');
    expect(two.kube.all(jobs)).toHaveLength(0);
    expect(store.objects.get(key)?.toString()).toBe(before);
  });
});

describe('a restore', () => {
  let two: MemoryCluster;
  beforeEach(async () => {
    await kept(one, { ...wanted(), metadata: { namespace: 'default', name: 'ubuntu', labels: { os: 'ubuntu' } } });
    two = cluster();
  });
  const ubuntu = aHyperCloudImage() as unknown as BackupImageObject;
  const pendingOf = async () => (await readMemory(two.deps)).pending;

  it('creates missing images as they were, from their backups', async () => {
    two.setTarget();
    await two.tick();
    const restored = (await two.image(ubuntu))!;
    expect(restored).toMatchObject({
      spec: { backup: true, storageClassName: 'local' },
      metadata: { labels: { os: 'ubuntu' } },
    });
    const mark: unknown = JSON.parse(restored.metadata.annotations?.[annotations.restore] ?? '');
    expect(mark).toMatchObject({
      from: { type: 's3', bucket: 'backups', key: `harvester/vmimage-data/disks/${disk}` },
    });
    expect(two.sent.map(({ type }) => type)).toEqual(['dev.bullion.backup.restored']);
  });

  it('gives golden volumes of Harvester the names that their clones refer to (harvester#11145)', async () => {
    const first = await kept(one, backedUp(aHarvesterImage()));
    two.setTarget();
    await two.tick();
    const restored = (await two.image(first))!;
    // Without its status, which names the volume that an image has.
    const [volume, source] = [
      { ...first, status: {} },
      { ...restored, status: {} },
    ].map((image) => readImage(harvesterType as never, image)!.image);
    expect(source?.childNames.volume).toBe((await one.image(first))?.status?.children?.volume);
    expect(volume?.childNames.volume).not.toBe(source?.childNames.volume);
    expect(restored.spec).toMatchObject({ sourceType: 'restore', backend: 'csi', displayName: 'leap' });
    expect(source?.faults).toEqual([]);
  });

  it('creates namespaces, and waits for what their administrator must provide', async () => {
    const metadata = metadataAt(key)!;
    const elsewhere = { ...metadata, image: { ...metadata.image, namespace: 'team' } };
    store.objects.set('harvester/vmimages/team-ubuntu/vmimage-metadata.yaml', serializeMetadata(elsewhere));
    two.setTarget();
    await two.tick();
    const inTeam = { ...ubuntu, metadata: { ...ubuntu.metadata, namespace: 'team' } };
    expect(await two.image(inTeam)).toBeUndefined();
    expect(await pendingOf()).toMatchObject([{ image: 'team/ubuntu', result: 'SecretMissing' }]);
    two.kube.seed(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'backup-target', namespace: 'team' },
    });
    await two.tick();
    expect(await two.image(inTeam)).toBeDefined();
    expect(await pendingOf()).toEqual([]);
  });

  it.each<[string, () => void, () => void, string]>([
    [
      'its storage class',
      () => void two.kube.delete(storageClassType, { name: 'local' }),
      () => two.kube.seed(storageClasses, aStorageClass()),
      'StorageClassNotFound',
    ],
    [
      'its disk',
      () => store.objects.delete(`harvester/vmimage-data/disks/${disk}`),
      () => store.objects.set(`harvester/vmimage-data/disks/${disk}`, Buffer.from('table')),
      'DataMissing',
    ],
  ])('waits for %s, and continues once it exists', async (_, take, give, reason) => {
    take();
    two.setTarget();
    await two.tick(2);
    expect(await two.image(ubuntu)).toBeUndefined();
    expect(await pendingOf()).toMatchObject([{ result: reason }]);
    give();
    await two.tick();
    expect(await two.image(ubuntu)).toBeDefined();
  });

  it('is not blocked by invalid, empty or truncated entries, and reports the fault of each', async () => {
    const whole = store.objects.get(key)!;
    const at = (name: string) => `harvester/vmimages/a-${name}/vmimage-metadata.yaml`;
    store.objects.set(at('garbage'), Buffer.from('\u0000<html>'));
    store.objects.set(at('empty'), Buffer.alloc(0));
    store.objects.set(at('cut'), whole.subarray(0, 100));
    store.objects.set('harvester/vmimages/readme.txt', Buffer.from('hello'));
    const problems = (await lookThrough(store)).entries.map(({ key: where, problem }) => [
      where.split('/')[2],
      problem,
    ]);
    expect(problems).toEqual([
      ['a-cut', expect.stringMatching(/no YAML|incomplete/)],
      ['a-empty', 'the object is empty'],
      ['a-garbage', expect.stringMatching(/no YAML|incomplete/)],
      ['default-ubuntu', undefined],
      ['readme.txt', 'no metadata of an image has such a name'],
    ]);
    two.setTarget();
    await two.tick();
    expect(await two.image(ubuntu)).toBeDefined();
  });

  it('continues after an entry that cannot be read at the moment, and retries it', async () => {
    const metadata = metadataAt(key)!;
    const second = 'harvester/vmimages/default-z/vmimage-metadata.yaml';
    store.objects.set(
      second,
      serializeMetadata({ ...metadata, image: { ...metadata.image, name: 'z', uid: 'z-uid' } }),
    );
    store.fault = (verb, at) => (verb === 'read' && at === key ? down : undefined);
    two.setTarget();
    await two.tick();
    const z = { ...ubuntu, metadata: { ...ubuntu.metadata, name: 'z' } };
    expect(await two.image(z)).toBeDefined();
    expect(await two.image(ubuntu)).toBeUndefined();
    store.fault = () => undefined;
    await two.tick();
    expect(await two.image(ubuntu)).toBeDefined();
  });

  it('does not accept an empty listing as a result', async () => {
    store.isBlind = true;
    two.setTarget();
    await two.tick(2);
    store.isBlind = false;
    await two.tick();
    expect(await two.image(ubuntu)).toBeDefined();
  });

  it('does not accept an incomplete listing as a result', async () => {
    store.fault = (verb) => (verb === 'list' ? down : undefined);
    two.setTarget();
    await two.tick(2);
    store.fault = () => undefined;
    await two.tick();
    expect(await two.image(ubuntu)).toBeDefined();
  });

  it('lists each target once, and again at its interval', async () => {
    two.setTarget();
    await two.tick();
    const lists = () => store.calls.filter((call) => call.startsWith('list')).length;
    const before = lists();
    await two.tick(5);
    expect(lists()).toBe(before);
    two.setTarget({
      type: 's3',
      endpoint: 'https://store.example',
      bucketName: 'backups',
      refreshIntervalInSeconds: '120',
    });
    await two.tick(4);
    expect(lists()).toBe(before + 2);
  });

  it('does not change an image of the same name with different bytes, and reports both', async () => {
    const here = two.ready(aHyperCloudImage(), 'f'.repeat(64));
    two.setTarget();
    await two.tick();
    const observed = (await two.image(here))!;
    expect(observed.metadata.uid).toBe(here.metadata.uid);
    expect(conditionOf(observed, 'RestoreConflict')).toMatchObject({
      status: 'True',
      message: expect.stringContaining(metadataAt(key)!.image.uid),
    });
    expect(await pendingOf()).toMatchObject([{ result: 'conflict' }]);
  });

  it('does not change an image of the same display name, reports both, and continues with the others (harvester#6772)', async () => {
    const image = await kept(one, backedUp(aHarvesterImage()));
    two.kube.seed(harvesterType, {
      ...aHarvesterImage(),
      metadata: { namespace: 'default', name: 'other', labels: { 'harvesterhci.io/imageDisplayName': 'leap' } },
    } as never);
    two.setTarget();
    await two.tick();
    expect(await two.image(image)).toBeUndefined();
    expect(await two.image(ubuntu)).toBeDefined();
    const holder = two.kube
      .all<BackupImageObject>(harvesterType as never)
      .find(({ metadata }) => metadata.name === 'other');
    expect(conditionOf(holder, 'RestoreConflict')?.message).toMatch(/default\/other.*"leap".*default\/image-leap/);
  });

  it('reads backups of Harvester, and waits until Longhorn has their data, whatever the interval (harvester#7918)', async () => {
    const url = 's3://bucket@us-east-1/?backingImage=vmi-0b5a';
    const released = {
      name: 'image-x',
      namespace: 'default',
      url,
      displayName: 'X',
      description: 'd',
      checksum: '',
      storageClassParameters: { numberOfReplicas: '3' },
    };
    store.objects.set('harvester/vmimages/default/image-x.cfg', Buffer.from(JSON.stringify(released)));
    two.setTarget();
    await two.tick();
    const x = {
      ...(aHarvesterImage() as unknown as BackupImageObject),
      metadata: { namespace: 'default', name: 'image-x' },
    };
    // Longhorn has not listed the target yet.
    expect(await two.image(x)).toBeUndefined();
    two.kube.seed(bbiType, {
      apiVersion: 'longhorn.io/v1beta2',
      kind: 'BackupBackingImage',
      metadata: { name: 'bbi-1', namespace: 'longhorn-system' },
      status: { state: 'Completed', backingImage: 'vmi-0b5a', url },
    } as never);
    await two.tick();
    expect((await two.image(x))?.spec).toMatchObject({
      sourceType: 'restore',
      url,
      displayName: 'X',
      backend: 'backingimage',
    });
    expect((await two.image(x))?.metadata.annotations?.[annotations.restore]).not.toContain('"from"');
  });

  it('forgets a target that was removed, and lists it again when it is back', async () => {
    two.setTarget();
    await two.tick();
    two.setTarget({});
    await two.tick();
    expect((await readMemory(two.deps)).target).toBeUndefined();
    expect(two.kube.all(configMaps).map(({ metadata }) => metadata.name)).toContain('backup-memory');
  });
});

const storageClassType = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
};
const harvesterType = {
  group: 'harvesterhci.io',
  version: 'v1beta1',
  kind: 'VirtualMachineImage',
  plural: 'virtualmachineimages',
  namespaced: true,
};
const bbiType = {
  group: 'longhorn.io',
  version: 'v1beta2',
  kind: 'BackupBackingImage',
  plural: 'backupbackingimages',
  namespaced: true,
};
