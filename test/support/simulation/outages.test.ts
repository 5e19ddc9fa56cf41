// Partial outages around the functions, one at a time: what stops meanwhile and what does not.
import { describe, expect, it } from 'vitest';
import { jobs, persistentVolumeClaims, pods, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { aHyperCloudImage, aSnapshotClass, aStorageClass, aSuccess } from '#test/support/builders.ts';
import { calm, storm } from '#test/support/simulation/chaos.ts';
import { type World, createWorld, imageIn } from '#test/support/simulation/world.ts';

const minutes = 60_000;
const image = aHyperCloudImage();
const { type } = hyperCloudImageKind;
const key = { namespace: 'default', name: image.metadata.name };

const begin = (options: Partial<Parameters<typeof createWorld>[0]> = {}): World => {
  const world = createWorld({ attempt: () => ({ runMs: 20_000, end: aSuccess() }), ...options });
  world.kube.seed(storageClasses, aStorageClass());
  world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
  return world;
};

const stateOf = (world: World) => imageIn<HyperCloudImage>(world)?.status?.state;

describe('webhooks that do not answer', () => {
  it('block no existing image: it is imported, and deleted, as usual', async () => {
    const world = begin();
    world.schedule(0, () => world.kube.seed(type, image));
    world.webhooksDownUntil(600 * minutes);
    await world.run(60 * minutes);
    expect(stateOf(world)).toBe('Available');
    await world.kube.delete(type, key);
    await world.run(120 * minutes);
    expect(world.kube.all<KubeObject>().filter(({ metadata }) => metadata.labels?.[labels.ownerUid])).toEqual([]);
    expect(imageIn(world)).toBeUndefined();
    // A profile of a storage class is a new object of Bullion, which the next tick creates.
    expect(world.refused.filter((write) => !write.startsWith('CREATE storageprofiles'))).toEqual([]);
  });

  it('block new images and changed specs, as the API server does, and nothing else', async () => {
    const world = begin();
    world.webhooksDownUntil(minutes);
    await expect(world.kube.create(type, image)).rejects.toThrow(
      /failed calling webhook "images.validate.bullion.dev"/,
    );
    world.kube.seed(type, image);
    const patch = (metadata: object) => world.kube.mergePatch(type, key, { metadata });
    await expect(patch({ annotations: { [annotations.retry]: '1' } })).rejects.toBeInstanceOf(Unavailable);
    await patch({ labels: { mine: 'yes' }, finalizers: ['mine'] });
    await world.kube.mergePatch(type, key, { status: { state: 'Creating' } }, { subresource: 'status' });
    const metadata = { name: 'a', namespace: 'default' };
    await world.kube.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] } });
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: {} };
    await world.kube.create(persistentVolumeClaims, claim as never);
    await world.kube.delete(persistentVolumeClaims, metadata);
    const golden = { ...metadata, name: 'golden', labels: { [labels.ownerUid]: 'u', [labels.role]: 'volume' } };
    const marked = { ...claim, metadata: golden };
    const mark = () => world.kube.create(persistentVolumeClaims, marked as never);
    await expect(mark()).rejects.toThrow(/failed calling webhook "marks.validate.bullion.dev"/);
    world.kube.seed(persistentVolumeClaims, marked as never);
    const remove = () => world.kube.delete(persistentVolumeClaims, golden);
    await expect(remove()).rejects.toThrow(/failed calling webhook "golden.validate.bullion.dev"/);
    expect(world.refused).toEqual([
      'CREATE virtualmachineimages by kubernetes-admin',
      'UPDATE virtualmachineimages by kubernetes-admin',
      'CREATE persistentvolumeclaims by kubernetes-admin',
      'DELETE persistentvolumeclaims by kubernetes-admin',
    ]);
  });
});

describe('watches that are interrupted', () => {
  it('lose changes once their version has expired, and the next tick compensates for it', async () => {
    const world = begin();
    // Interrupted permanently: without ticks no change of the image or its children is observed.
    world.schedule(0, () => {
      world.kube.watches.refuse(new Unavailable('down'));
      world.kube.watches.cut();
      world.kube.seed(type, image);
    });
    await world.run(60 * minutes);
    expect(stateOf(world)).toBe('Available');
    expect(world.trace.filter((call) => !/^(cron-tick|sidecar-sync)/.test(call))).toEqual([]);
  });

  it('continue at their position as long as their version is available', async () => {
    const world = begin();
    world.schedule(0, () => {
      world.kube.watches.refuse(new Unavailable('down'));
      world.kube.watches.cut();
      world.kube.seed(type, image);
    });
    world.schedule(500, () => world.kube.watches.refuse());
    world.schedule(2_000, () => expect(world.kube.all(jobs)).toHaveLength(1));
    await world.run(10 * minutes);
    expect(stateOf(world)).toBe('Available');
  });
});

describe('the chaos generator', () => {
  it('contains each of its faults', async () => {
    const kinds = new Set<string>();
    for (let seed = 1; seed <= 10; seed += 1) {
      const world = begin({ seed, chaos: storm, stormMs: 8 * minutes });
      const { watches } = world.kube;
      const ask = (): void =>
        void world.kube.create(type, image).catch(() => world.schedule(world.elapsed() + 5_000, ask));
      world.schedule(0, ask);
      const { cut, compact } = watches;
      watches.cut = (which) => (kinds.add('cut'), cut(which));
      watches.compact = () => (kinds.add('expired'), compact());
      await world.run(60 * minutes);
      if (world.refused.length > 0) kinds.add('refused');
      expect(stateOf(world)).toBe('Available');
    }
    expect([...kinds].toSorted()).toEqual(['cut', 'expired', 'refused']);
  });

  it('changes nothing when switched off', () => {
    expect(Object.values(calm).every((odds) => odds === 0)).toBe(true);
    expect(Object.keys(calm)).toEqual(Object.keys(storm));
  });
});
