// What is usable stays usable: a rule that became stricter with an upgrade, or a setting that is gone, refuses only what would have to be made again.
import { beforeEach, describe, expect, it } from 'vitest';
import { jobs, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import { refOf } from '#shared/api/object.ts';
import { backends } from '#shared/backends/registry.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { aHyperCloudImage, aSnapshotClass, aStorageClass, aSuccess, testSettings } from '#test/support/builders.ts';
import { nothingElse } from '#test/support/reconcile.ts';
import { type World, createWorld } from '#test/support/simulation/world.ts';

const images = hyperCloudImageKind.type;
const volumes = virtualMachineVolumeKind.type;
const key = { namespace: 'default', name: 'ubuntu' };
const disk = { namespace: 'default', name: 'root' };

let world: World;
let deps: ReconcileDeps;
beforeEach(async () => {
  world = createWorld({ attempt: () => ({ runMs: 2_000, end: aSuccess() }) });
  const { kube } = world;
  kube.seed(storageClasses, aStorageClass());
  kube.seed(volumeSnapshotClasses, aSnapshotClass());
  world.schedule(0, () => {
    kube.seed(images, aHyperCloudImage());
    kube.seed(volumes, {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineVolume',
      metadata: { ...disk, uid: 'root-uid' },
      spec: { virtualMachineImage: { name: 'ubuntu' } },
    } as never);
  });
  await world.run(3_600_000);
  deps = {
    ...nothingElse,
    kube,
    backends,
    settings: testSettings,
    now: () => Date.now(),
    log: silentLogger,
  };
});

const imageNow = () => world.kube.all(images)[0]!;
const again = () => reconcile(deps, refOf(imageNow()), { which: 'all' });
/** As if today's rules were stricter than those of its creation. */
const breakSpec = () => world.kube.edit(images, key, ({ spec }) => void (spec.checksum = 'md5:1'));

describe('an image that is available', () => {
  it('stays so, although its spec breaks a rule', async () => {
    expect(imageNow().status?.state).toBe('Available');
    breakSpec();
    expect(await again()).toMatchObject({ kind: 'done' });
    expect(imageNow().status?.state).toBe('Available');
  });

  it('stays so, although the object store of its source is not configured any more', async () => {
    world.kube.edit(
      images,
      key,
      ({ spec }) => void (spec.source = { objectStore: { bucketName: 'b-1', objectName: 'o' } }),
    );
    expect(await again()).toMatchObject({ kind: 'done' });
    expect(imageNow().status?.state).toBe('Available');
  });

  it('is refused once its volume is lost, and nothing is made in its place', async () => {
    const before = world.kube.all(jobs);
    breakSpec();
    await world.kube.delete(persistentVolumeClaims, {
      namespace: 'default',
      name: imageNow().status!.children!.volume!,
    });
    world.kube.edit(
      persistentVolumeClaims,
      { namespace: 'default', name: imageNow().status!.children!.volume! },
      (claim) => {
        claim.metadata.finalizers = [];
      },
    );
    expect(await again()).toMatchObject({
      kind: 'failed',
      reason: 'InvalidSpec',
      message: expect.stringContaining('checksum'),
    });
    expect(world.kube.all(jobs)).toEqual(before);
  });
});

describe('a volume that is available', () => {
  it('stays so, although its spec breaks a rule', async () => {
    const volumeNow = () => world.kube.all(volumes)[0]!;
    expect(volumeNow().status?.state).toBe('Available');
    world.kube.edit(volumes, disk, ({ spec }) => void (spec.capacity = { storage: 'much' }));
    expect(await reconcile(deps, refOf(volumeNow()), { which: 'all' })).toMatchObject({ kind: 'done' });
    expect(volumeNow().status?.state).toBe('Available');
  });
});
