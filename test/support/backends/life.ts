// The life of an image on a backend, in a whole simulated cluster through the real handlers: the guarantees of every backend. Called by
// contract.test.ts.
import { describe, expect, it } from 'vitest';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { type HarvesterImage, type HarvesterImageStatus, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { type BackendRegistry, registrationOf } from '#shared/backends/registry.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { type Storage, localClasses, usual } from '#test/support/backends/classes.ts';
import { aFault, aHarvesterImage, aSnapshotClass, aStorageProfile, aSuccess } from '#test/support/builders.ts';
import { calm } from '#test/support/simulation/chaos.ts';
import type { AttemptScript } from '#test/support/simulation/attempts.ts';
import { type Verdict, deathAfterEffect } from '#test/support/simulation/scheduler.ts';
import { type World, type WorldOptions, createWorld, imageIn } from '#test/support/simulation/world.ts';

const hours = 3_600_000;
/** Limit of calls of all functions from creation to usable, for an import with one attempt. */
const mostCalls = 31;
/** Calls of the tick that are independent of images. */
const housekeeping = /^cron-tick: \w+ (storageclasses|storageprofiles|volumesnapshotclasses|cdiconfigs)\//;
const success: AttemptScript = { runMs: 4_000, end: aSuccess() };
const flaky: AttemptScript = { runMs: 4_000, end: aFault() };
const images = harvesterImageKind.type;
const killed: Verdict = { is: 'kill' };
const key = { namespace: 'default', name: 'image-leap' };

export interface LifeOptions {
  /** Whether its transfers can fail. */
  readonly fails?: boolean;
  /** Whether disks keep reading the image: then it must last as long as they do. */
  readonly disksShareIt?: boolean;
  /** Whether it uses a DataVolume, which an installed CDI fills. */
  readonly makesDataVolumes?: boolean;
}

interface Lived {
  readonly world: World;
  /** All observed statuses, in order. */
  readonly observed: readonly HarvesterImageStatus[];
  readonly image: () => HarvesterImage | undefined;
  /** Calls until the image could be observed as usable. */
  readonly callsToReady: () => readonly string[];
}

export const describeLife = (
  name: string,
  registry: BackendRegistry,
  { fails = true, disksShareIt = false, makesDataVolumes = false }: LifeOptions = {},
): void => {
  const begin = (options: Partial<WorldOptions> = {}, storage: Storage = usual): Lived => {
    const world = createWorld({ attempt: () => success, backends: registry, ...options });
    const observed: HarvesterImageStatus[] = [];
    let readyAt: number | undefined;
    world.kube.onChange(({ object }) => {
      const { status } = object as HarvesterImage;
      if (object.kind !== images.kind || status === undefined) return;
      observed.push(status);
      if (status.phase === 'Imported') readyAt ??= world.trace.length;
    });
    world.kube.seed(storageClasses, storage.storageClass);
    if (storage.described !== undefined) world.kube.seed(storageProfiles, storage.described);
    if (storage.snapshots) world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
    const { spec, ...rest } = aHarvesterImage();
    const object = { ...rest, spec: { ...spec, backend: name as 'csi', retry: 2 } };
    world.schedule(0, () => world.kube.seed(images, object));
    return {
      world,
      observed,
      image: () => imageIn<HarvesterImage>(world),
      callsToReady: () => world.trace.slice(0, readyAt).filter((call) => !housekeeping.test(call)),
    };
  };
  const live = async (options: Partial<WorldOptions> = {}, storage: Storage = usual): Promise<Lived> => {
    const lived = begin(options, storage);
    await lived.world.run(4 * hours);
    expect(lived.world.bugs).toEqual([]);
    return lived;
  };
  const childrenIn = ({ kube }: World) =>
    kube.all().filter(({ metadata }) => metadata.labels?.[labels.ownerUid] !== undefined);

  describe(`the life of an image on ${name}`, () => {
    it('ends usable, and only moves forward', async () => {
      const { observed, image } = await live();
      expect(image()?.status).toMatchObject({ phase: 'Imported', progress: 100, failed: 0 });
      const progress = observed.map((status) => status.progress ?? 0);
      expect(progress).toEqual(progress.toSorted((a, b) => a - b));
      expect(observed.filter((status) => status.progress === 100).every(({ phase }) => phase === 'Imported')).toBe(
        true,
      );
    });

    it.each(Object.entries(localClasses))('is complete on storage that %s', async (_what, storage) => {
      const { world, image } = await live({}, storage);
      expect(image()?.status).toMatchObject({ phase: 'Imported', attempts: fails ? 1 : 0 });
      await world.kube.delete(images, key);
      await world.run(world.elapsed() + hours);
      expect({ image: image(), children: childrenIn(world) }).toEqual({ image: undefined, children: [] });
    });

    it('needs few API requests, and none while nothing changes', async () => {
      const described = aStorageProfile({ status: { snapshotClass: aSnapshotClass().metadata.name } });
      const { world, image, callsToReady } = await live(makesDataVolumes ? { cdi: 'use' } : {}, {
        ...usual,
        described,
      });
      process.stdout.write(`${name}: ${callsToReady().length} API calls for an import of one attempt\n`);
      expect(callsToReady().length).toBeLessThan(mostCalls);
      const before = world.trace.length;
      await world.run(world.elapsed() + hours);
      expect(world.trace.slice(before).filter((call) => !/^(cron-tick|import-object): list /.test(call))).toEqual([]);
      expect(image()?.status?.phase).toBe('Imported');
    });

    it.runIf(makesDataVolumes)('needs few more API requests when the DataVolume is reconciled by Bullion', async () => {
      const byCdi = (await live({ cdi: 'use' })).callsToReady().length;
      const both = (await live()).callsToReady().length;
      process.stdout.write(`${name}: ${both} with a DataVolume of our own, ${both - byCdi} of them for that\n`);
      expect(both - byCdi).toBeLessThan(mostCalls);
    });

    it.each([0, 500, 1_500, 3_500, 6_000, 9_000, 60_000])(
      'can be deleted after %i ms, and leaves nothing',
      async (after) => {
        const { world, image } = begin();
        world.schedule(after, () => void world.kube.delete(images, key));
        await world.run(4 * hours);
        expect({ bugs: world.bugs, image: image(), children: childrenIn(world) }).toEqual({
          bugs: [],
          image: undefined,
          children: [],
        });
      },
    );

    it('reaches the same state wherever its function is killed', { timeout: 240_000 }, async () => {
      const calls = (await live()).callsToReady();
      for (const [at, call] of calls.entries()) {
        // Before the call, and if it is a write, also after it took effect.
        const deaths: readonly Verdict[] = / (get|list) /.test(call) ? [killed] : [killed, deathAfterEffect];
        for (const death of deaths) {
          const { image } = await live({ judge: (_call, index) => (index === at ? death : undefined) });
          expect(image()?.status?.phase, `${death.is === 'kill' ? 'before' : 'after'} call ${at}: ${call}`).toBe(
            'Imported',
          );
        }
      }
    });

    it.each([
      ['lost', { ...calm, drop: 1 }],
      ['repeated', { ...calm, repeat: 1 }],
      ['late and out of order', { ...calm, delay: 1 }],
    ])('reaches the same state when events are %s', async (_how, chaos) => {
      const { image } = await live({ chaos, stormMs: hours });
      expect(image()?.status?.phase).toBe('Imported');
    });

    it('describes how a disk is created from it', async () => {
      const { image } = await live();
      const registration = registrationOf(registry, name);
      if (!registration.served) throw new Error(registration.because);
      const disk = registration.backend.rootDiskOf(harvesterImages.toImage(image()!));
      expect(disk.is === 'class' ? disk.className : disk.volume).not.toBe('');
    });

    it.runIf(disksShareIt)('is kept while a disk depends on it', async () => {
      const { world, image } = await live();
      const { storageClassName = '' } = image()!.status!;
      world.kube.seed(persistentVolumeClaims, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { namespace: 'other', name: 'root', finalizers: [] },
        spec: { storageClassName },
      });
      await world.kube.delete(images, key);
      await world.run(world.elapsed() + hours);
      const ready = image()?.status?.conditions?.find(({ type }) => type === 'Ready');
      expect(ready).toMatchObject({ reason: 'InUse', message: expect.stringContaining('other/root') as string });
      await world.kube.delete(persistentVolumeClaims, { namespace: 'other', name: 'root' });
      world.kube.edit(persistentVolumeClaims, { namespace: 'other', name: 'root' }, (edited) => {
        edited.metadata.finalizers = [];
      });
      await world.run(world.elapsed() + hours);
      expect(image()).toBeUndefined();
    });
  });

  describe.skipIf(!fails)(`failures of an image on ${name}`, () => {
    it('are counted by attempt, and recovered from', async () => {
      const { image } = await live({
        attempt: (mode, attempt) => (mode === 'import' && attempt === 1 ? flaky : success),
      });
      expect(image()?.status).toMatchObject({ phase: 'Imported', attempts: 2, failed: 1 });
    });

    it.each(Object.entries(localClasses))('are recovered from on storage that %s', async (_what, storage) => {
      const attempt = (mode: string, nth: number) => (mode === 'import' && nth === 1 ? flaky : success);
      const { image } = await live({ attempt }, storage);
      expect(image()?.status).toMatchObject({ phase: 'Imported', attempts: 2, failed: 1 });
    });

    it('end at the limit and never beyond it', async () => {
      const attempts = new Set<number>();
      const { image } = await live({
        attempt: (mode, attempt) => {
          if (mode === 'inspect') return success;
          attempts.add(attempt);
          return flaky;
        },
      });
      expect(image()?.status).toMatchObject({ phase: 'Failed', attempts: 3, attemptsFailed: 3, failed: 3 });
      expect([...attempts]).toEqual([1, 2, 3]);
    });

    it('report why, and are restarted on request', async () => {
      let isMended = false;
      const { world, image } = await live({ attempt: () => (isMended ? success : flaky) });
      const ready = image()?.status?.conditions?.find(({ type }) => type === 'Ready');
      expect(ready?.message).toContain('503');
      isMended = true;
      world.kube.edit(images, key, (edited) => {
        edited.metadata.annotations = { ...edited.metadata.annotations, [annotations.retry]: '1' };
      });
      await world.run(world.elapsed() + hours);
      expect(image()?.status).toMatchObject({ phase: 'Imported', retryHandled: '1', failed: 3 });
    });

    it('end a transfer that never starts, with its reason', async () => {
      const { image } = await live({ attempt: () => ({ ...success, unschedulable: true }) });
      expect(image()?.status?.phase).toBe('Failed');
      expect(image()?.status?.conditions?.find(({ type }) => type === 'Ready')?.message).toContain('gave up waiting');
    });
  });
};
