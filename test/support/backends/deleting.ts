// An image that was deleted within its grace is brought back by what held its bytes, on every backend, wherever a function is killed. In a simulated
// cluster through the real handlers. Called by contract.test.ts.
import { describe, expect, it } from 'vitest';
import { storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { backends } from '#shared/backends/registry.ts';
import { listHolders } from '#shared/resources/deleted-images/keep.ts';
import { imageFrom, imageOfHolder } from '#shared/resources/deleted-images/record.ts';
import { usual } from '#test/support/backends/classes.ts';
import { aHarvesterImage, aSnapshotClass, aSuccess } from '#test/support/builders.ts';
import { type Verdict, deathAfterEffect } from '#test/support/simulation/scheduler.ts';
import { type World, type WorldOptions, createWorld, imageIn } from '#test/support/simulation/world.ts';

const hours = 3_600_000;
const { type } = harvesterImageKind;
const key = { namespace: 'default', name: 'image-leap' };
const killed: Verdict = { is: 'kill' };

const imageNow = (world: World) => imageIn<HarvesterImage>(world);
const childrenIn = ({ kube }: World) =>
  kube.all().filter(({ metadata }) => metadata.labels?.[labels.ownerUid] !== undefined);
const readyOf = (world: World) => imageNow(world)?.status?.conditions?.find((condition) => condition.type === 'Ready');

const begin = async (backend: string, grace: string | undefined, options: Partial<WorldOptions>): Promise<World> => {
  const world = createWorld({ attempt: () => ({ runMs: 4_000, end: aSuccess() }), backends, ...options });
  world.kube.seed(storageClasses, usual.storageClass);
  world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
  const { spec, metadata, ...rest } = aHarvesterImage();
  const marks = grace === undefined ? {} : { [annotations.undeleteFor]: grace };
  const image = {
    ...rest,
    metadata: { ...metadata, annotations: marks },
    spec: { ...spec, backend: backend as 'csi' },
  };
  world.schedule(0, () => world.kube.seed(type, image));
  await world.run(hours);
  expect(imageNow(world)?.status?.phase).toBe('Imported');
  return world;
};

/** The image as what is left of it records it. */
const left = async (world: World) => {
  const [holder, ...others] = await listHolders(world.kube);
  const kept = holder && imageOfHolder(holder.object);
  if (holder === undefined || kept === undefined) throw new Error('nothing is left of the image');
  return { holder: holder.object, others, image: imageFrom(kept, type, holder.object) as HarvesterImage };
};

const removeImage = async (world: World): Promise<void> => {
  await world.kube.delete(type, key);
  await world.run(world.elapsed() + hours);
};

/** Imported, deleted, brought back. */
const live = async (backend: string, options: Partial<WorldOptions> = {}) => {
  const world = await begin(backend, '3h', options);
  const atEnd = world.trace.length;
  await removeImage(world);
  expect(imageNow(world)).toBeUndefined();
  const { holder, others, image } = await left(world);
  world.kube.seed(type, image);
  await world.run(world.elapsed() + hours);
  return { world, atEnd, holder, others };
};

const present = ({ kube }: World, { kind, metadata }: KubeObject) =>
  kube.all().find((one) => one.kind === kind && one.metadata.name === metadata.name);

type Lived = Awaited<ReturnType<typeof live>>;
const filling = / create (jobs|persistentvolumeclaims|datavolumes|backingimages)/;

/** What became of the image, and of the object that held its bytes. */
const outcomeOf = ({ world, atEnd, holder }: Lived) => {
  const { metadata } = present(world, holder) ?? {};
  return {
    bugs: world.bugs,
    phase: imageNow(world)?.status?.phase,
    isTheSame: metadata?.uid === holder.metadata.uid,
    isItsOwn: metadata?.labels?.[labels.ownerUid] === imageNow(world)?.metadata.uid,
    made: world.trace.slice(atEnd).filter((call) => filling.test(call)),
  };
};
const back = { bugs: [], phase: 'Imported', isTheSame: true, isItsOwn: true, made: [] };

export const describeDeleting = (name: string): void => {
  describe(`a deleted image on ${name}`, () => {
    it('is brought back by what held its bytes, and removed after its grace', async () => {
      const lived = await live(name);
      const { world, holder, others } = lived;
      expect(outcomeOf(lived)).toEqual(back);
      expect(others).toEqual([]);
      world.kube.collectGarbage();
      expect(present(world, holder)).toBeDefined();
      await removeImage(world);
      expect(present(world, holder)).toBeDefined();
      for (let hour = 0; hour < 16; hour += 1) await world.run(world.elapsed() + hours);
      expect({ image: imageNow(world), children: childrenIn(world) }).toEqual({ image: undefined, children: [] });
    });

    it('is brought back wherever its function is killed', { timeout: 120_000 }, async () => {
      const { world, atEnd } = await live(name);
      for (const [at, call] of world.trace.entries()) {
        if (at < atEnd || / (get|list) /.test(call)) continue;
        for (const death of [killed, deathAfterEffect]) {
          const when = `${death.is} at ${at}: ${call}`;
          const lived = await live(name, { judge: (_call, index) => (index === at ? death : undefined) });
          expect({ when, ...outcomeOf(lived) }).toEqual({ when, ...back });
        }
      }
    });

    it('leaves nothing without a grace', async () => {
      const world = await begin(name, undefined, {});
      await removeImage(world);
      expect({ image: imageNow(world), children: childrenIn(world) }).toEqual({ image: undefined, children: [] });
    });

    it('does not come back with another spec, or without its bytes', async () => {
      const world = await begin(name, '3h', {});
      await removeImage(world);
      const { image, holder } = await left(world);
      world.kube.seed(type, { ...image, spec: { ...image.spec, url: 'http://elsewhere.example/disk.qcow2' } });
      await world.run(world.elapsed() + hours);
      expect(readyOf(world)).toMatchObject({
        reason: 'UndeleteFailed',
        message: expect.stringContaining('spec differs'),
      });
      expect(present(world, holder)?.metadata.uid).toBe(holder.metadata.uid);
      await removeImage(world);
      world.kube.seed(type, {
        ...image,
        metadata: { ...image.metadata, annotations: { [annotations.undelete]: 'something' } },
      });
      await world.run(world.elapsed() + hours);
      expect(readyOf(world)).toMatchObject({
        reason: 'UndeleteFailed',
        message: expect.stringContaining('nothing holds its bytes'),
      });
    });
  });
};
