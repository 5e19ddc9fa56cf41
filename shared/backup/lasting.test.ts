// What is recorded must stay so: recreated volumes, deletions by others, more deletions than can be stored.
import { beforeEach, describe, expect, it } from 'vitest';
import { jobs, persistentVolumeClaims, secrets } from '#shared/api/foreign/core.ts';
import { type BackupImageObject, imageTypes } from '#shared/backup/image.ts';
import { type Deleted, type Memory, bounded, readMemory, remember } from '#shared/backup/memory.ts';
import { parseMetadata, parseTombstone, serializeTombstone } from '#shared/backup/metadata.ts';
import { tombstoneKey } from '#shared/backup/place.ts';
import { mostUids, noteDeletions, writeTombstone } from '#shared/backup/removal.ts';
import { clusterOf } from '#shared/backup/clusters.ts';
import { findTarget } from '#shared/backup/open.ts';
import { syncImage } from '#shared/backup/sync.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { type MemoryCluster, backedUp, clusterOn, kept as keptIn } from '#test/support/backup-world.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { type MemoryStore, createMemoryStore } from '#test/support/memory-store.ts';

const disk = 'd'.repeat(64);
const otherDisk = 'e'.repeat(64);
const key = 'harvester/vmimages/default-ubuntu/vmimage-metadata.yaml';
const hyperCloud = imageTypes[1]!;

let store: MemoryStore;
let one: MemoryCluster;

const wanted = (): BackupImageObject => backedUp(aHyperCloudImage());
const kept = (where: MemoryCluster, of = disk): Promise<BackupImageObject> => keptIn(where, wanted(), of);
const metadataAt = (at: string) => {
  const parsed = parseMetadata(store.objects.get(at) ?? Buffer.alloc(0));
  return 'value' in parsed ? parsed.value : undefined;
};

beforeEach(() => {
  store = createMemoryStore();
  one = clusterOn(store);
});

describe('a recorded backup', () => {
  it('does not apply to a golden volume that was lost and filled again', async () => {
    const image = await kept(one);
    const [volume] = one.kube.all(persistentVolumeClaims);
    await one.kube.delete(persistentVolumeClaims, volume!.metadata as never);
    one.time.clock += 60_000;
    const before = (await one.image(image))!.status;
    one.ready({ ...image, metadata: { ...image.metadata } }, 'b'.repeat(64));
    one.kube.edit(hyperCloud, image.metadata as never, (edited) => {
      edited.status = { ...edited.status, backup: before?.backup } as never;
    });
    await one.tick(2);
    expect(metadataAt(key)?.data).toEqual({ kept: 'chunks', disk });
    expect(metadataAt(key)?.digests).toEqual({ sha256: 'a'.repeat(64) });
    one.finishJob(image, otherDisk);
    await one.tick();
    expect(metadataAt(key)).toMatchObject({
      data: { kept: 'chunks', disk: otherDisk },
      digests: { sha256: 'b'.repeat(64) },
    });
    expect(one.kube.all(jobs)).toHaveLength(1);
  });

  it('applies to a golden volume that was filled again with the same content, and is not checked each day', async () => {
    const image = await kept(one);
    const { status } = (await one.image(image))!;
    await one.kube.delete(persistentVolumeClaims, one.kube.all(persistentVolumeClaims)[0]!.metadata as never);
    one.time.clock += 60_000;
    one.ready({ ...image, metadata: { ...image.metadata } });
    one.kube.edit(hyperCloud, image.metadata as never, (edited) => {
      edited.status = { ...edited.status, backup: status?.backup } as never;
    });
    await one.tick(2);
    one.finishJob(image, disk);
    await one.tick();
    const [made] = one.kube.all(persistentVolumeClaims);
    const { time = '' } = (await one.image(image))!.status!.backup!;
    expect(Date.parse(time)).toBeGreaterThan(Date.parse(made!.metadata.creationTimestamp!));
    // Kubernetes forgets Jobs after a day.
    await one.kube.delete(jobs, one.kube.all(jobs)[0]!.metadata as never);
    await one.tick(60);
    expect(one.kube.all(jobs)).toEqual([]);
  });

  it('does not start with a golden volume that is being deleted, which its pod would keep in use', async () => {
    const image = one.ready(wanted());
    const [volume] = one.kube.all(persistentVolumeClaims);
    one.kube.edit(persistentVolumeClaims, volume!.metadata as never, (edited) => {
      edited.metadata.deletionTimestamp = '2026-01-02T03:00:00Z';
    });
    await one.tick();
    expect(one.kube.all(jobs)).toEqual([]);
    expect((await one.image(image))?.status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'DataReady', status: 'False', reason: 'VolumeLost' }),
    );
  });

  it('is written again within an hour when the cluster that first wrote the same content deleted its image', async () => {
    const image = await kept(one);
    const two = clusterOn(store);
    const same = await kept(two);
    expect((await two.image(same))?.status?.backup?.object).toBe(key);
    expect(metadataAt(key)?.image.uid).toBe(image.metadata.uid);
    await one.kube.delete(hyperCloud, image.metadata as never);
    await syncImage(one.deps, { ...image, ...image.metadata });
    expect(metadataAt(key)).toBeUndefined();
    await two.tick(60);
    expect(metadataAt(key)?.image.uid).toBe(same.metadata.uid);
  });

  it('contains no credential of a URL in an annotation or a text', async () => {
    const note = 'from https://me:pa55word@images.example/a.img?token=t0ken, as asked';
    const base = wanted();
    one.ready({ ...base, metadata: { ...base.metadata, annotations: { note } }, spec: { ...base.spec, note } });
    await one.tick();
    one.finishJob(one.kube.all<BackupImageObject>(hyperCloud)[0]!, disk);
    await one.tick();
    const shown = 'from https://images.example/a.img as asked';
    expect(metadataAt(key)).toMatchObject({ annotations: { note: shown }, spec: { note: shown } });
  });
});

const deletedOne = (uid: string, over: Partial<Deleted> = {}): Deleted => ({
  uids: [uid],
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineImage',
  namespace: 'default',
  name: 'ubuntu',
  target: 'https://store.example/backups',
  isNoted: false,
  ...over,
});

describe('a deletion', () => {
  it('is recorded however many there were of the same name', async () => {
    const uids = Array.from({ length: mostUids }, (_, index) => `uid-${index}`);
    const at = tombstoneKey({ ...deletedOne('new'), cluster: 'c' });
    const deleted = { cluster: 'c', namespace: 'default', name: 'ubuntu', uids };
    store.objects.set(at, serializeTombstone({ version: 1, deleted }));
    await writeTombstone(store, deletedOne('new'), 'c');
    expect(parseTombstone(store.objects.get(at)!)).toMatchObject({
      value: { deleted: { uids: [...uids.slice(1), 'new'] } },
    });
  });

  it('is recorded although another one cannot be', async () => {
    await remember(one.deps, (memory) => ({ ...memory, deleted: [deletedOne('u1', { name: 'a' }), deletedOne('u2')] }));
    store.fault = (_, at) => (at.includes('default-a') ? new S3Failure('Denied', '403') : undefined);
    await noteDeletions(one.deps, await findTarget(one.kube));
    expect((await readMemory(one.deps)).deleted.map(({ isNoted }) => isNoted)).toEqual([false, true]);
  });

  it('is recorded in every target that is configured later, when the status of the image named none', async () => {
    const { target: _, ...anywhere } = deletedOne('u1');
    await remember(one.deps, (memory) => ({ ...memory, deleted: [anywhere] }));
    const at = tombstoneKey({ ...anywhere, cluster: await clusterOf(one.kube) });
    await noteDeletions(one.deps, await findTarget(one.kube));
    expect(store.objects.has(at)).toBe(true);
    store.objects.delete(at);
    await noteDeletions(one.deps, await findTarget(one.kube));
    expect(store.objects.has(at)).toBe(false);
    // Another target: the metadata may have been written there.
    await remember(one.deps, (memory) => ({
      ...memory,
      deleted: memory.deleted.map((known) => ({ ...known, notedIn: ['https://store.example/others'] })),
    }));
    await noteDeletions(one.deps, await findTarget(one.kube));
    expect(store.objects.has(at)).toBe(true);
  });

  it('is recorded in the target that is configured, although the status of the image names the one before', async () => {
    const image = await kept(one);
    // Metadata was written, and the write of the status failed.
    one.kube.edit(hyperCloud, image.metadata as never, (object) => {
      object.status!.backup!.target = 'https://store.example/others';
    });
    await one.kube.delete(hyperCloud, image.metadata as never);
    await syncImage(one.deps, { ...image, ...image.metadata });
    expect(metadataAt(key)).toBeUndefined();
    const two = clusterOn(store);
    await two.tick(2);
    expect(await two.image(image)).toBeUndefined();
  });

  it('applies to a waiting entry, although its metadata still exists', async () => {
    const image = await kept(one);
    const two = clusterOn(store);
    await two.kube.delete(secrets, { namespace: 'default', name: 'backup-target' });
    await two.tick();
    expect((await readMemory(two.deps)).pending).toMatchObject([{ result: 'SecretMissing' }]);
    store.fault = (verb) => (verb === 'remove' ? new S3Failure('Denied', '403') : undefined);
    await one.kube.delete(hyperCloud, image.metadata as never);
    await syncImage(one.deps, { ...image, ...image.metadata });
    expect(metadataAt(key)).toBeDefined();
    two.kube.seed(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'backup-target', namespace: 'default' },
    });
    await two.tick(2);
    expect(await two.image(image)).toBeUndefined();
  });
});

describe('a restored image that its user deletes', () => {
  const hour = 60;
  const week = 7 * 24 * hour;
  const deletes = async ({ kube, deps }: MemoryCluster, { metadata, apiVersion, kind }: BackupImageObject) => {
    await kube.delete(hyperCloud, { namespace: metadata.namespace, name: metadata.name });
    await syncImage(deps, { apiVersion, kind, namespace: metadata.namespace, name: metadata.name });
  };
  /** Both clocks go on, in steps of an hour and the minutes in it. */
  const goOn = async (minutes: number, ...clusters: readonly MemoryCluster[]) => {
    const step = clusters.length === 1 && minutes > 10 * hour ? minutes - 2 * hour : 0;
    for (const one_ of clusters) one_.time.clock += step * 60_000;
    for (const one_ of clusters) await one_.tick(minutes - step);
  };

  it('stays in the target while its first cluster has a heartbeat, and is removed after a week without one', async () => {
    const image = await kept(one);
    const two = clusterOn(store);
    two.time.clock = one.time.clock;
    await two.tick();
    expect(await two.image(image)).toBeDefined();
    await deletes(two, image);
    await goOn(2 * hour, one, two);
    expect(metadataAt(key)).toBeDefined();
    // The first cluster is lost from here on.
    await goOn(week - 2 * hour, two);
    expect(metadataAt(key)).toBeDefined();
    await goOn(3 * hour, two);
    expect(metadataAt(key)).toBeUndefined();
    expect((await readMemory(two.deps)).deleted).toMatchObject([{ isNoted: true }]);
    expect((await readMemory(two.deps)).deleted[0]).not.toHaveProperty('left');
    const three = clusterOn(store);
    await three.tick(2);
    expect(await three.image(image)).toBeUndefined();
  });

  it('is written again by its first cluster, which was considered lost, as soon as that is back', async () => {
    const image = await kept(one);
    const two = clusterOn(store);
    two.time.clock = one.time.clock;
    await two.tick();
    await deletes(two, image);
    await goOn(week + 3 * hour, two);
    expect(metadataAt(key)).toBeUndefined();
    one.time.clock = two.time.clock;
    await one.tick();
    expect(metadataAt(key)?.image.uid).toBe(image.metadata.uid);
    await two.tick(2);
    expect(await two.image(image)).toBeUndefined();
    expect(metadataAt(key)).toBeDefined();
  });

  it('stays when the first cluster has another image of the name by then', async () => {
    const image = await kept(one);
    const two = clusterOn(store);
    two.time.clock = one.time.clock;
    await two.tick();
    await deletes(one, image);
    const again = await kept(one, otherDisk);
    await deletes(two, image);
    await goOn(week + 3 * hour, two);
    expect(metadataAt(key)?.image.uid).toBe(again.metadata.uid);
  });
});

describe('the record of deletions', () => {
  const empty: Memory = { emptyLooks: 0, deleted: [], pending: [], looked: 'then' };
  const item = { object: 'o'.repeat(300), image: 'i'.repeat(300), result: 'waiting', message: '"'.repeat(500) };

  it('fits into a ConfigMap, and drops the deletions that the target has recorded first', () => {
    const name = 'n'.repeat(250);
    const deleted = Array.from({ length: 3000 }, (_, index) =>
      deletedOne(`uid-${index}`, { name, isNoted: index % 2 === 0 }),
    );
    const memory = bounded({ ...empty, deleted, pending: Array.from({ length: 600 }, () => item) });
    expect(Buffer.byteLength(JSON.stringify(JSON.stringify(memory)))).toBeLessThan(1_000_000);
    expect(memory.deleted.at(-1)?.uids).toEqual(['uid-2999']);
    expect(memory.deleted.some(({ isNoted }) => isNoted)).toBe(false);
    expect(memory.looked).toBeUndefined();
  });

  it('is unchanged while it fits', () => {
    const memory = { ...empty, deleted: [deletedOne('a'), deletedOne('b', { isNoted: true })], pending: [item] };
    expect(bounded(memory)).toEqual(memory);
  });
});
