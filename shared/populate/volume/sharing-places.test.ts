// Singleflight when no snapshot can be retained of a disk: classes without snapshots, and classes that wait for a consumer.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { leases } from '#shared/api/foreign/kubernetes.ts';
import {
  type PersistentVolume,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import { aStorageClass } from '#test/support/builders.ts';
import { type Shared, namespace, share } from '#test/support/shared-content.ts';

const plain = async (): Promise<Shared> => {
  const shared = share();
  const { kube } = shared;
  for (const { metadata } of kube.all(volumeSnapshotClasses)) await kube.delete(volumeSnapshotClasses, metadata);
  return shared;
};

const waiting = (): Shared => {
  const shared = share();
  shared.kube.seed(storageClasses, aStorageClass('late', { volumeBindingMode: 'WaitForFirstConsumer' }));
  return shared;
};

const volumeOf = ({ kube }: Shared, name: string): DataVolume | undefined =>
  kube.all(dataVolumeKind.type).find(({ metadata }) => metadata.name === name);
const readyOf = (shared: Shared, name: string) =>
  volumeOf(shared, name)?.status?.conditions?.find(({ type }) => type === 'Ready');
const fetchReasonOf = (shared: Shared, name: string) => volumeOf(shared, name)?.status?.detail?.fetchReason;
const claimOf = ({ kube }: Shared, name: string) =>
  kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === name);
const keptOf = ({ kube }: Shared) =>
  kube.all(persistentVolumeClaims).filter(({ metadata }) => metadata.name.startsWith('content-'));

const settle = async ({ reconcileAll, fill }: Shared, ...names: readonly string[]): Promise<void> => {
  for (let round = 0; round < 6; round += 1) {
    await reconcileAll(names);
    fill();
  }
  await reconcileAll(names);
};

describe('a disk of a class without snapshots', () => {
  it('is copied for waiting volumes, before its machine writes to it', async () => {
    const shared = await plain();
    const { add, reconcileAll, fill, fetching, phaseOf, remove } = shared;
    add('disk', 'local', 'plain');
    await reconcileAll(['disk']);
    add('two', 'local', 'plain');
    add('golden');
    await reconcileAll(['two', 'golden']);
    for (const name of ['two', 'golden'])
      expect(readyOf(shared, name)?.message).toContain('DataVolume disk fetches the same image');
    fill();
    await reconcileAll(['disk']);
    // Not handed over yet: no pod may write to it while it is being copied.
    expect([phaseOf('disk'), readyOf(shared, 'disk')?.message, keptOf(shared).length]).toEqual([
      'ImportInProgress',
      expect.stringContaining('for others that wait'),
      1,
    ]);
    await settle(shared, 'disk', 'two', 'golden');
    expect(['disk', 'two', 'golden'].map(phaseOf)).toEqual(['Succeeded', 'Succeeded', 'Succeeded']);
    expect(fetching()).toEqual(['registry']);
    const [kept] = keptOf(shared);
    expect(['two', 'golden'].map((name) => recordOf(claimOf(shared, name))?.from?.name)).toContain(kept?.metadata.name);
    expect(['two', 'golden'].map((name) => recordOf(claimOf(shared, name))?.from?.name)).not.toContain('disk');
    // Counted: it is deleted with the last volume cloned from it.
    await remove('disk');
    expect(keptOf(shared).length).toBe(1);
    await remove('two');
    await remove('golden');
    expect(keptOf(shared)).toEqual([]);
  });

  it('takes no space when no volume waits, and a late volume reports why the bytes are fetched again', async () => {
    const shared = await plain();
    const { add, fetching, phaseOf } = shared;
    add('disk', 'local', 'plain');
    await settle(shared, 'disk');
    expect([phaseOf('disk'), keptOf(shared)]).toEqual(['Succeeded', []]);
    add('golden');
    await settle(shared, 'golden');
    expect([phaseOf('golden'), fetching().length]).toEqual(['Succeeded', 2]);
    expect(fetchReasonOf(shared, 'golden')).toMatch(
      /^DataVolume disk has fetched the same content before, and there is no copy left/,
    );
    // From then on there is something to copy.
    add('two', 'local', 'plain');
    await settle(shared, 'two');
    expect([phaseOf('two'), fetching().length, fetchReasonOf(shared, 'two')]).toEqual(['Succeeded', 2, undefined]);
  });

  it('is handed over although its copy failed, and the waiting volume fetches', async () => {
    const shared = await plain();
    const { add, reconcileAll, fill, fail, phaseOf, fetching } = shared;
    add('disk', 'local', 'plain');
    await reconcileAll(['disk']);
    add('golden');
    await reconcileAll(['golden']);
    fill();
    await reconcileAll(['disk']);
    fail('keep-');
    await reconcileAll(['disk']);
    expect([phaseOf('disk'), keptOf(shared)]).toEqual(['Succeeded', []]);
    await settle(shared, 'golden');
    expect([phaseOf('golden'), fetching().length]).toEqual(['Succeeded', 2]);
  });

  it('and others with the same content finish in any order; each that fetches again reports why', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const step = fc.oneof(
      fc.record({
        do: fc.constant('add' as const),
        name: fc.constantFrom(...names),
        kind: fc.constantFrom('version', 'disk', 'late', 'hypercloud', 'harvester'),
      }),
      fc.record({ do: fc.constant('reconcile' as const), names: fc.subarray(names, { minLength: 1 }) }),
      fc.record({ do: fc.constant('fill' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('plain', 'waiting'),
        fc.array(step, { minLength: 4, maxLength: 14 }),
        async (place, steps) => {
          const shared = place === 'plain' ? await plain() : waiting();
          const className = place === 'plain' ? 'local' : 'late';
          const added = new Set<string>();
          for (const one of steps) {
            if (one.do === 'reconcile') await shared.reconcileAll(one.names);
            else if (one.do === 'fill') shared.fill();
            else if (!added.has(one.name)) {
              added.add(one.name);
              shared.add(one.name, className, one.kind as Parameters<Shared['add']>[2]);
            }
          }
          for (let round = 0; round < 10; round += 1) {
            await shared.reconcileAll(names);
            shared.fill();
          }
          await shared.reconcileAll(names);
          for (const name of added) expect(['Succeeded', 'Available', 'Imported']).toContain(shared.phaseOf(name));
          const again = shared.statuses().filter((status) => JSON.stringify(status).includes('"fetchReason"'));
          expect(shared.fetching().length).toBe(added.size === 0 ? 0 : 1 + again.length);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('a disk whose consumer determines its topology', () => {
  it('blocks no other volume while it waits, and is copied from what was fetched meanwhile', async () => {
    const shared = waiting();
    const { add, reconcileAll, fetching, phaseOf, kube } = shared;
    add('disk', 'late', 'late');
    await reconcileAll(['disk']);
    await reconcileAll(['disk']);
    expect([readyOf(shared, 'disk')?.message, fetching(), kube.all(leases)]).toEqual([
      expect.stringContaining('once a virtual machine uses it'),
      [],
      [],
    ]);
    add('golden', 'late', 'version');
    await settle(shared, 'golden');
    expect([phaseOf('golden'), fetching().length]).toEqual(['Succeeded', 1]);
    await settle(shared, 'disk');
    expect([phaseOf('disk'), fetching().length, recordOf(claimOf(shared, 'disk'))?.from?.name]).toEqual([
      'Succeeded',
      1,
      'golden',
    ]);
  });

  it('fetches for volumes that are created after its consumer', async () => {
    const shared = waiting();
    const { add, reconcileAll, fill, fetching, phaseOf } = shared;
    add('disk', 'late', 'late');
    await reconcileAll(['disk']);
    fill();
    await reconcileAll(['disk']);
    expect(fetching().length).toBe(1);
    add('golden', 'late', 'version');
    await reconcileAll(['golden']);
    expect(readyOf(shared, 'golden')?.message).toContain('DataVolume disk fetches the same image');
    await settle(shared, 'disk', 'golden');
    expect([phaseOf('disk'), phaseOf('golden'), fetching().length]).toEqual(['Succeeded', 'Succeeded', 1]);
  });

  it('fetches by itself when no node can access both, and reports it', async () => {
    const shared = waiting();
    const { add, reconcileAll, fetching, phaseOf, kube } = shared;
    const place = (claim: string, node: string): void => {
      const volume = {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: `pv-${claim}` },
        spec: { capacity: {}, accessModes: [], nodeAffinity: { required: { node } } },
      } satisfies PersistentVolume;
      kube.seed(persistentVolumes, volume);
      kube.edit(persistentVolumeClaims, { namespace, name: claim }, ({ spec }) => {
        (spec as { volumeName?: string }).volumeName = volume.metadata.name;
      });
    };
    add('golden', 'late', 'version');
    await settle(shared, 'golden');
    place('golden', 'one');
    add('disk', 'late', 'late');
    await reconcileAll(['disk']);
    place('disk', 'other');
    await settle(shared, 'disk');
    expect([phaseOf('disk'), fetching().length]).toEqual(['Succeeded', 2]);
    expect(fetchReasonOf(shared, 'disk')).toMatch(
      /golden has the same content, but cannot be copied here: no node reaches both/,
    );
  });
});
