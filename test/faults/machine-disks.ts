// A virtual machine that is created and deleted under faults, and whose events are lost: its disks are created, and deleted with it when configured.
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { orphansIn } from '#test/faults/invariants.ts';
import { aHarvesterImage, aSnapshotClass, aStorageClass, aSuccess } from '#test/support/builders.ts';
import { createRandom } from '#test/support/random.ts';
import { storm } from '#test/support/simulation/chaos.ts';
import { type World, createWorld } from '#test/support/simulation/world.ts';

const stormMs = 8 * 60_000;
const limitMs = 4 * 3_600_000;
const namespace = 'default';
const key = { namespace, name: 'web' };

const template = (name: string) => ({
  metadata: { name, annotations: { [harvesterAnnotations.imageId]: `${namespace}/image-leap` } },
  spec: { accessModes: ['ReadWriteMany'], volumeMode: 'Block', resources: { requests: { storage: '2Gi' } } },
});

/** The names of the existing disks. */
const disksIn = ({ kube }: World): readonly string[] =>
  [...kube.all(persistentVolumeClaims), ...kube.all(dataVolumeKind.type)]
    .map(({ metadata }) => metadata.name)
    .filter((name) => name.startsWith('disk-'));

/** The violations; empty if there are none. */
export const runMachine = async (seed: number): Promise<readonly string[]> => {
  const random = createRandom(seed);
  const world = createWorld({ seed, chaos: storm, stormMs, attempt: () => ({ runMs: 20_000, end: aSuccess() }) });
  const { kube } = world;
  kube.seed(storageClasses, aStorageClass());
  kube.seed(volumeSnapshotClasses, aSnapshotClass());
  world.schedule(0, () => kube.seed(harvesterImageKind.type, aHarvesterImage()));
  const disks = JSON.stringify([template('disk-goes'), template('disk-stays')]);
  world.schedule(random.below(60_000), () => {
    kube.seed(virtualMachines, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { ...key, annotations: { [harvesterAnnotations.claimTemplates]: disks } },
    });
  });
  // Its user sets what is deleted with it, and deletes it immediately afterwards.
  const leave = () => {
    if (new Set(disksIn(world)).size < 2) return world.schedule(world.elapsed() + 5_000, leave);
    kube.edit(virtualMachines, key, ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, [harvesterAnnotations.removedClaims]: 'disk-goes' };
    });
    void kube.delete(virtualMachines, key);
  };
  world.schedule(random.below(400_000), leave);
  await world.run(limitMs);
  const isThere = (name: string): boolean => disksIn(world).includes(name);
  return [
    ...world.bugs.map((bug) => `a bug was thrown: ${String(bug)}`),
    ...orphansIn(world),
    ...(kube.all(virtualMachines).length > 0 ? ['the machine is held for ever'] : []),
    ...(isThere('disk-goes') ? ['a disk is left that was to go with its machine'] : []),
    ...(isThere('disk-stays') ? [] : ['a disk is gone that was to stay']),
  ];
};
