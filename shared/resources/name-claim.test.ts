// Images of the same display name that were created concurrently, so that admission saw only one.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { leases } from '#shared/api/foreign/kubernetes.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { type VirtualMachineVolumeExport, volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { aHarvesterImage } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';

const { type } = harvesterImageKind;

const given = (...names: readonly string[]) => {
  const deps = createTestReconciler();
  const images = names.map((name) =>
    deps.kube.seed(type, aHarvesterImage({ metadata: { namespace: 'default', name } })),
  );
  return { deps, images };
};
type Given = ReturnType<typeof given>;

const go = ({ deps }: Given, image: HarvesterImage) =>
  reconcile(deps, { ...type, apiVersion: image.apiVersion, namespace: 'default', name: image.metadata.name });
const readyOf = ({ deps }: Given, name: string) =>
  deps.kube
    .all(type)
    .find(({ metadata }) => metadata.name === name)
    ?.status?.conditions?.find((condition) => condition.type === 'Ready');
const ownersOf = ({ deps }: Given): readonly unknown[] => [
  ...new Set(deps.kube.all(jobs).map(({ metadata }) => metadata.labels?.[labels.ownerUid])),
];

describe('two images of the same display name', () => {
  it('that were created concurrently end like two in sequence: one is created, one reports the conflict', async () => {
    const world = given('a', 'b');
    await Promise.all(world.images.map((image) => go(world, image)));
    expect(ownersOf(world)).toHaveLength(1);
    const reasons = ['a', 'b'].map((name) => readyOf(world, name)?.reason);
    expect(reasons.filter((reason) => reason === 'DisplayNameTaken')).toHaveLength(1);
    const loser = reasons[0] === 'DisplayNameTaken' ? 'a' : 'b';
    const winner = loser === 'a' ? 'b' : 'a';
    expect(readyOf(world, loser)?.message).toMatch(
      `${winner} has the display name "leap", and was the first to have it`,
    );
  });

  it('never both start, in whatever order they are reconciled', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.nat(2), { minLength: 3, maxLength: 9 }),
        async (scheduler, order) => {
          const world = given('a', 'b', 'c');
          const kube = new Proxy(world.deps.kube, {
            get: (target, name, receiver) => {
              const method: unknown = Reflect.get(target, name, receiver);
              if (typeof method !== 'function' || !['get', 'create', 'replace', 'mergePatch'].includes(String(name)))
                return method;
              return scheduler.scheduleFunction(async (...args: unknown[]): Promise<unknown> =>
                (method as (...given: unknown[]) => Promise<unknown>).apply(target, args),
              );
            },
          });
          const scheduled = { ...world, deps: { ...world.deps, kube } };
          const passes = [0, 1, 2, ...order].map((index) => go(scheduled, world.images[index]!).catch(() => undefined));
          await scheduler.waitFor(Promise.all(passes));
          for (const image of world.images) await go(world, image);
          expect(ownersOf(world)).toHaveLength(1);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('pass the name on: the other starts once the first is deleted and a retry is requested', async () => {
    const world = given('a', 'b');
    for (const image of world.images) await go(world, image);
    expect(readyOf(world, 'b')?.reason).toBe('DisplayNameTaken');
    const [first] = world.images;
    world.deps.kube.edit(type, { namespace: 'default', name: 'a' }, (image) => {
      image.metadata.finalizers = [];
    });
    await world.deps.kube.delete(type, { namespace: 'default', name: 'a' });
    world.deps.kube.edit(type, { namespace: 'default', name: 'b' }, (image) => {
      image.metadata.annotations = { [annotations.retry]: '1' };
    });
    await go(world, world.images[1]!);
    expect(ownersOf(world)).toEqual([first!.metadata.uid, world.images[1]!.metadata.uid]);
    expect(world.deps.kube.all(leases)).toMatchObject([{ spec: { holderIdentity: world.images[1]!.metadata.uid } }]);
  });

  it('may exist in two namespaces', async () => {
    const world = given('a');
    const other = world.deps.kube.seed(type, aHarvesterImage({ metadata: { namespace: 'other', name: 'a' } }));
    await go(world, world.images[0]!);
    await reconcile(world.deps, { ...type, apiVersion: other.apiVersion, namespace: 'other', name: 'a' });
    expect(ownersOf(world)).toHaveLength(2);
  });
});

describe('two exports to the same object of a store', () => {
  const exports = volumeExportKind.type;
  const toOne = (namespace: string, name = 'disk'): VirtualMachineVolumeExport => ({
    apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
    kind: 'VirtualMachineVolumeExport',
    metadata: { namespace, name },
    spec: { pvcName: 'not-there', destination: { s3: { url: 'https://exports.store.example/disk.qcow2' } } },
  });
  const reasonsOf = (deps: ReturnType<typeof createTestReconciler>) =>
    Object.fromEntries(
      deps.kube.all(exports).map(({ metadata, status }) => {
        const ready = status?.conditions?.find((condition) => condition.type === 'Ready');
        return [metadata.namespace, ready?.reason];
      }),
    );

  it('never both start, in whatever namespaces they are; the second one starts once the first is deleted', async () => {
    const deps = createTestReconciler();
    const [first, second] = ['one', 'two'].map((namespace) => deps.kube.seed(exports, toOne(namespace)));
    const goOn = ({ metadata, apiVersion, kind }: KubeObject) => reconcile(deps, { ...metadata, apiVersion, kind });
    await goOn(first!);
    await goOn(second!);
    expect(reasonsOf(deps)).toEqual({ one: 'SourceNotFound', two: 'DestinationTaken' });
    const { conditions = [] } = deps.kube.all(exports)[1]?.status ?? {};
    expect(conditions.find((condition) => condition.type === 'Ready')?.message).toMatch(
      /VirtualMachineVolumeExport one\/disk has the destination/,
    );
    await deps.kube.delete(exports, first!.metadata);
    for (let pass = 0; pass < 6; pass += 1) await goOn(first!);
    expect(deps.kube.all(leases)).toEqual([]);
    deps.kube.edit(exports, second!.metadata, (edited) => {
      edited.metadata.annotations = { [annotations.retry]: '1' };
    });
    await goOn(second!);
    expect(reasonsOf(deps)).toEqual({ two: 'SourceNotFound' });
    expect(deps.kube.all(leases)).toMatchObject([
      { metadata: { namespace: 'bullion-system' }, spec: { holderIdentity: second!.metadata.uid } },
    ]);
  });
});
