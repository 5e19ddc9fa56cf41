// A whole import on a virtual clock, through the real handlers: what users observe meanwhile, and its number of requests.
import { describe, expect, it } from 'vitest';
import { jobs, kubeEvents, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { aHyperCloudImage, aSnapshotClass, aStorageClass, aSuccess } from '#test/support/builders.ts';
import { type WorldOptions, createWorld, imageIn } from '#test/support/simulation/world.ts';

const minutes = 60_000;

const begin = (options: Partial<WorldOptions> = {}, image = aHyperCloudImage()) => {
  const world = createWorld({ attempt: () => ({ runMs: 20_000, end: aSuccess() }), ...options });
  world.kube.seed(storageClasses, aStorageClass());
  world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
  world.schedule(0, () => world.kube.seed(hyperCloudImageKind.type, image));
  return world;
};

const sized = (): HyperCloudImage =>
  aHyperCloudImage({
    spec: {
      source: { http: 'https://images.example/ubuntu.img' },
      storageClassName: 'local',
      pvc: { resources: { requests: { storage: '3Gi' } } },
    },
  });

describe('an import', () => {
  it('determines the size, populates a volume, takes a snapshot of it and becomes available', async () => {
    const world = begin();
    await world.run(60 * minutes);
    const image = imageIn<HyperCloudImage>(world);
    expect(world.bugs).toEqual([]);
    expect(image?.status).toMatchObject({
      state: 'Available',
      phase: 'Available',
      progress: 100,
      virtualSize: 2 ** 30,
      format: 'qcow2',
      storageClassName: 'local',
      children: { volume: 'ubuntu-image-pvc', snapshot: 'ubuntu-image-snapshot' },
    });
    const [volume] = world.kube.all(persistentVolumeClaims);
    expect(volume).toMatchObject({
      metadata: { name: 'ubuntu-image-pvc', annotations: { imported: 'yes' } },
      spec: { volumeMode: 'Block', resources: { requests: { storage: '1Gi' } } },
    });
    expect(world.kube.all(volumeSnapshots)).toMatchObject([{ metadata: { name: 'ubuntu-image-snapshot' } }]);
    expect(world.kube.all(jobs)).toHaveLength(2);
    expect(world.kube.all(kubeEvents)).toMatchObject([{ type: 'Normal', reason: 'Ready' }]);
  });

  it('needs few API requests', async () => {
    const world = begin({ attempt: () => ({ runMs: 2_000, end: aSuccess() }) }, sized());
    await world.run(60 * minutes);
    expect(imageIn<HyperCloudImage>(world)?.status?.state).toBe('Available');
    // Once it is ready, the objects that wait for it are listed: those requests are counted for them.
    const isOfImport = (call: string) => !/^cron-tick|list virtualmachine(pvcs|volumes)/.test(call);
    const ofImports = world.trace.filter(isOfImport);
    expect(ofImports.length).toBeLessThan(30);
  });
});
