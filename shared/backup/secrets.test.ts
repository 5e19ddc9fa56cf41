// What exists only once a user provides it: Secrets in new namespaces, and whatever else a restored image lacked when it failed.
import { beforeEach, describe, expect, it } from 'vitest';
import { jobs, kubeEvents, secrets } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import { type BackupImageObject, imageTypes } from '#shared/backup/image.ts';
import { readMemory } from '#shared/backup/memory.ts';
import type { ImageMetadata } from '#shared/backup/metadata.ts';
import { serializeMetadata } from '#shared/backup/metadata.ts';
import { secretsOfClass } from '#shared/backup/secret.ts';
import { type MemoryCluster, backedUp, clusterOn, conditionOf } from '#test/support/backup-world.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { type MemoryStore, createMemoryStore } from '#test/support/memory-store.ts';

const disk = 'd'.repeat(64);
const hyperCloud = imageTypes[1]!;
let store: MemoryStore;
let one: MemoryCluster;

const inTeam = (): BackupImageObject => backedUp(aHyperCloudImage({ metadata: { namespace: 'team', name: 'ubuntu' } }));
const giveSecret = ({ kube }: MemoryCluster, name = 'backup-target', namespace = 'team') =>
  kube.seed(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace } });

beforeEach(() => {
  store = createMemoryStore();
  one = clusterOn(store);
});

describe('a backup', () => {
  it('does not start while its namespace lacks the Secret, reports which, and continues once it exists', async () => {
    const image = one.ready(inTeam());
    await one.tick(2);
    expect(conditionOf(await one.image(image), 'DataReady')).toMatchObject({
      status: 'False',
      reason: 'SecretMissing',
      message: expect.stringMatching(
        /Secret backup-target is missing in namespace team: create it with the credentials/,
      ),
    });
    expect(one.kube.all(jobs)).toEqual([]);
    giveSecret(one);
    await one.tick();
    expect(conditionOf(await one.image(image), 'DataReady')).toMatchObject({ reason: 'BackingUp' });
    expect(one.kube.all(jobs)).toHaveLength(1);
  });
});

describe('a restore', () => {
  it('waits for the Secret of its namespace, reports it there once, and continues once it exists', async () => {
    giveSecret(one);
    const image = one.ready(inTeam());
    await one.tick();
    one.finishJob(image, disk);
    await one.tick();
    const two = clusterOn(store);
    await two.tick(3);
    expect(await two.image(image)).toBeUndefined();
    expect(two.kube.all(kubeEvents)).toMatchObject([
      {
        metadata: { namespace: 'team' },
        type: 'Warning',
        reason: 'SecretMissing',
        involvedObject: { kind: 'VirtualMachineImage', name: 'ubuntu' },
        message: expect.stringContaining('Secret backup-target is missing in namespace team'),
      },
    ]);
    giveSecret(two);
    await two.tick();
    expect(await two.image(image)).toBeDefined();
  });

  it('waits for the key that the volumes of an encrypted image are created with', async () => {
    const parameters = {
      encrypted: 'true',
      'csi.storage.k8s.io/node-publish-secret-name': 'disk-key',
      'csi.storage.k8s.io/node-publish-secret-namespace': 'default',
      'csi.storage.k8s.io/node-stage-secret-name': '${pvc.name}',
      'csi.storage.k8s.io/node-stage-secret-namespace': '${pvc.namespace}',
    };
    const url = 's3://b@r/?backingImage=vmi-1';
    const metadata: ImageMetadata = {
      version: 1,
      image: {
        apiVersion: 'harvesterhci.io/v1beta1',
        kind: 'VirtualMachineImage',
        namespace: 'default',
        name: 'crypt',
        uid: 'u',
        cluster: 'c',
      },
      backend: 'backingimage',
      displayName: 'crypt',
      spec: { displayName: 'crypt', sourceType: 'restore', url, storageClassParameters: parameters },
      children: { backingImage: 'vmi-1' },
      data: { kept: 'by-storage', url },
    };
    expect(secretsOfClass(metadata)).toMatchObject([{ namespace: 'default', name: 'disk-key' }]);
    store.objects.set('harvester/vmimages/default-crypt/vmimage-metadata.yaml', serializeMetadata(metadata));
    await one.tick();
    expect((await readMemory(one.deps)).pending).toMatchObject([
      { result: 'SecretMissing', message: expect.stringContaining('disk-key') },
    ]);
    giveSecret(one, 'disk-key', 'default');
    await one.tick();
    expect((await readMemory(one.deps)).pending).toMatchObject([{ result: 'WaitingForLonghorn' }]);
  });
});

describe('a restored image that failed', () => {
  const retryOf = async (image: BackupImageObject) =>
    (await one.image(image))?.metadata.annotations?.[annotations.retry];
  const restoredOne = async (over: object = {}): Promise<BackupImageObject> => {
    const two = clusterOn(store);
    giveSecret(two);
    const image = two.ready(inTeam());
    await two.tick();
    two.finishJob(image, disk);
    await two.tick();
    giveSecret(one);
    await one.tick();
    const time = new Date(one.time.clock).toISOString();
    one.kube.edit(hyperCloud, { namespace: 'team', name: 'ubuntu' }, (edited) => {
      edited.status = {
        phase: 'Failed',
        failed: 4,
        lastFailedTime: time,
        conditions: [{ type: 'Ready', status: 'False', reason: 'SourceForbidden', message: 'the store was down' }],
        ...over,
      } as never;
    });
    return (await one.image(inTeam()))!;
  };

  it('is restarted after a delay, and after a longer one the next time', async () => {
    const image = await restoredOne();
    await one.tick(9);
    expect(await retryOf(image)).toBeUndefined();
    await one.tick();
    const first = await retryOf(image);
    expect(Date.parse(first ?? '')).toBe(one.time.clock);
    one.kube.edit(hyperCloud, { namespace: 'team', name: 'ubuntu' }, (edited) => {
      const lastFailedTime = new Date(one.time.clock).toISOString();
      edited.status = { ...edited.status, failed: 8, lastFailedTime, retryHandled: first } as never;
    });
    await one.tick(19);
    expect(await retryOf(image)).toBe(first);
    await one.tick();
    expect(await retryOf(image)).not.toBe(first);
  });

  it('is not restarted while its Secret is missing, and restarted once it exists', async () => {
    const image = await restoredOne();
    await one.kube.delete(secrets, { namespace: 'team', name: 'backup-target' });
    await one.tick(30);
    expect(await retryOf(image)).toBeUndefined();
    giveSecret(one);
    await one.tick();
    expect(await retryOf(image)).toBeDefined();
  });

  it('excludes an image that was not restored', async () => {
    const image = await restoredOne();
    one.kube.edit(hyperCloud, { namespace: 'team', name: 'ubuntu' }, ({ metadata }) => {
      delete metadata.annotations?.[annotations.restore];
    });
    await one.tick(60);
    expect(await retryOf(image)).toBeUndefined();
  });

  it('excludes an image that is usable', async () => {
    const image = await restoredOne({ phase: 'Available' });
    await one.tick(60);
    expect(await retryOf(image)).toBeUndefined();
  });
});
