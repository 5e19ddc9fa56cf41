// A disk from a backup target, step by step: into a claim of Bullion, and from there into the DataVolume, whichever controller reconciles that.
import { describe, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type Job, jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { cdi } from '#shared/backends/cdi/index.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { aHyperCloudImage, aPod, aSuccess, anImage, imageRef } from '#test/support/builders.ts';
import { createTestReconciler, execute } from '#test/support/reconcile.ts';
import type { Image, ImageSource } from '#shared/backends/backend.ts';

const sources: readonly (readonly [string, ImageSource])[] = [
  ['s3', { type: 's3', endpoint: 'https://store.example', region: 'x', bucket: 'b', key: 'disks/1', pathStyle: false }],
  ['nfs', { type: 'nfs', server: 'nas', path: '/export', key: 'disks/1' }],
];
const stage = 'restore-11111111-1111-4111-8111-111111111111';
const complete = { conditions: [{ type: 'Complete', status: 'True' }] } as const;

const begin = (source: ImageSource) => {
  const { kube, settings, now } = createTestReconciler();
  // Its children are garbage-collected with it, and not before.
  kube.seed(hyperCloudImageKind.type, aHyperCloudImage({ metadata: { name: imageRef.name, uid: imageRef.uid } }));
  let image: Image = anImage({ backend: 'cdi', source, storage: { className: 'local' } });
  const context = { now: now(), settings };
  const pass = async (): Promise<ImageState> => {
    const plan = cdi.initialize(image, await cdi.check(kube, image), context);
    await execute(kube, plan.actions);
    image = { ...image, state: plan.state };
    return plan.state;
  };
  const finish = (mode: 'inspect' | 'import', report = aSuccess()): void => {
    const job = kube.all<Job>(jobs).find(({ metadata }) => metadata.name.startsWith(mode))!;
    kube.edit(jobs, job.metadata as never, (edited) => {
      edited.status = complete as never;
    });
    kube.seed(pods, aPod(job, 'a', 'Succeeded', { report }));
  };
  /** As CDI or Bullion does: its claim is created and bound, and its status is written. */
  const cloneIt = (): void => {
    const [made] = kube.all(dataVolumeKind.type);
    const owner = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', controller: true };
    const { name, namespace, uid = '' } = made!.metadata;
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace, ownerReferences: [{ ...owner, name, uid }] },
      spec: { storageClassName: 'local' },
      status: { phase: 'Bound', capacity: { storage: '2Gi' } },
    } as never);
    kube.edit(dataVolumeKind.type, { namespace, name }, (edited) => {
      edited.status = { phase: 'Succeeded' } as never;
    });
  };
  const remove = async (): Promise<void> => {
    const deleting = { ...image, deleting: true };
    await execute(kube, cdi.delete(deleting, await cdi.check(kube, deleting), context).actions);
    kube.collectGarbage();
  };
  const retry = (): void => {
    image = { ...image, retryToken: 'again', state: { ...image.state, phase: 'Failed' } };
  };
  const claims = () => kube.all(persistentVolumeClaims).map(({ metadata }) => metadata.name);
  return { kube, pass, finish, cloneIt, remove, retry, claims };
};

describe.each(sources)('an image that is restored from %s', (_, source) => {
  const staged = async () => {
    const world = begin(source);
    await world.pass();
    world.finish('inspect');
    await world.pass();
    world.finish('import');
    await world.pass();
    return world;
  };

  it('is first filled in a stage by a Job, then copied into its DataVolume, then the stage is deleted', async () => {
    const world = begin(source);
    expect(await world.pass()).toMatchObject({ reason: 'Inspecting' });
    world.finish('inspect');
    expect(await world.pass()).toMatchObject({ reason: 'Starting' });
    expect(world.claims()).toEqual([stage]);
    expect(world.kube.all(dataVolumeKind.type)).toEqual([]);
    world.finish('import');
    expect(await world.pass()).toMatchObject({ reason: 'Restored' });
    await world.pass();
    expect(world.kube.all(dataVolumeKind.type)).toMatchObject([
      { metadata: { name: 'ubuntu' }, spec: { source: { pvc: { namespace: 'default', name: stage } } } },
    ]);
    await world.pass();
    // Until the copy is whole.
    expect(world.claims()).toEqual([stage]);
    world.cloneIt();
    const state = await world.pass();
    expect(state).toMatchObject({ phase: 'Available', children: { volume: 'ubuntu' }, storageClassName: 'local' });
    // As large as the disk, not as its claim.
    expect(state.inspection?.virtualSize).toBe(2 ** 30);
    world.kube.collectGarbage();
    expect(world.claims()).toEqual(['ubuntu']);
    expect(world.kube.all(jobs).filter(({ metadata }) => metadata.name.startsWith('import'))).toEqual([]);
  });

  it('keeps the restored data when it is restarted', async () => {
    const world = await staged();
    await world.pass();
    world.retry();
    for (let round = 0; round < 3; round += 1) {
      await world.pass();
      world.kube.collectGarbage();
    }
    expect(world.claims()).toEqual([stage]);
    expect(world.kube.all(dataVolumeKind.type)).toHaveLength(1);
    world.cloneIt();
    expect(await world.pass()).toMatchObject({ phase: 'Available' });
  });

  it('leaves nothing behind when it is deleted meanwhile', async () => {
    const world = await staged();
    for (let round = 0; round < 3; round += 1) await world.remove();
    expect([world.claims(), world.kube.all(jobs), world.kube.all(dataVolumeKind.type)]).toEqual([[], [], []]);
  });
});
