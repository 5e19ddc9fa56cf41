import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { leases } from '#shared/api/foreign/kubernetes.ts';
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import { aHyperCloudImage, aStorageClass } from '#test/support/builders.ts';
import { checksum, file, namespace, share } from '#test/support/shared-content.ts';

const lastUse = 'cdi.kubevirt.io/storage.import.lastUseTime';

describe('volumes that request the same bytes', () => {
  it('fetch them once; the others wait, report for which volume, and are cloned', async () => {
    const { add, reconcileAll, fetching, phaseOf, fill, kube } = share();
    add('one');
    await reconcileAll(['one']);
    add('two');
    await reconcileAll(['two', 'one']);
    expect([fetching().length, kube.all(leases).length]).toEqual([1, 1]);
    const two = kube.all(dataVolumeKind.type).find(({ metadata }) => metadata.name === 'two');
    expect(two?.status?.conditions?.find(({ type }) => type === 'Ready')?.message).toContain(
      'DataVolume one fetches the same image',
    );
    fill();
    await reconcileAll(['one']);
    await reconcileAll(['two']);
    fill();
    await reconcileAll(['two']);
    expect(kube.all(persistentVolumeClaims).map((claim) => recordOf(claim)?.strategy)).toEqual([undefined, 'snapshot']);
    fill();
    await reconcileAll(['two']);
    expect([phaseOf('one'), phaseOf('two'), fetching().length]).toEqual(['Succeeded', 'Succeeded', 1]);
  });

  it('are retained as a snapshot before a machine writes to its disk, and never cloned from that disk', async () => {
    const { add, reconcileAll, fetching, kube, fill, phaseOf, remove } = share();
    const settle = async (...names: readonly string[]) => {
      for (let round = 0; round < 6; round += 1) {
        await reconcileAll(names);
        fill();
      }
      await reconcileAll(names);
    };
    add('disk', 'local', 'plain');
    await settle('disk');
    const [kept] = kube.all(volumeSnapshots);
    expect([phaseOf('disk'), kept?.metadata.name]).toEqual(['Succeeded', expect.stringMatching(/^content-/)]);
    add('two', 'local', 'plain');
    add('golden');
    await settle('two', 'golden');
    expect([phaseOf('two'), phaseOf('golden'), fetching().length]).toEqual(['Succeeded', 'Succeeded', 1]);
    const sources = kube.all(persistentVolumeClaims).map(({ spec }) => spec.dataSource?.name);
    expect(sources).toEqual([undefined, kept?.metadata.name, kept?.metadata.name]);
    // Held by all who have it from there.
    await remove('disk');
    expect(kube.all(volumeSnapshots).length).toBe(1);
    await remove('two');
    await remove('golden');
    expect(kube.all(volumeSnapshots)).toEqual([]);
  });

  it('are cloned from a golden volume, whatever their kind', async () => {
    const { add, reconcileAll, fetching, fill, kube } = share();
    add('golden');
    await reconcileAll(['golden']);
    fill();
    await reconcileAll(['golden']);
    add('disk', 'local', 'plain');
    await reconcileAll(['disk']);
    expect(fetching().length).toBe(1);
    fill();
    await reconcileAll(['disk']);
    // Versions record when they were last cloned.
    const used = kube
      .all(persistentVolumeClaims)
      .map(({ metadata }) => [metadata.name, metadata.annotations?.[lastUse]]);
    expect(used).toEqual([
      ['golden', '2026-01-02T03:04:05.000Z'],
      ['disk', undefined],
    ]);
  });

  it.each<readonly [first: 'golden' | 'image', second: 'golden' | 'image']>([
    ['golden', 'image'],
    ['image', 'golden'],
  ])('are fetched once for a cron and an image with the same content, the %s first', async (first, second) => {
    const { add, reconcileAll, fetching, fill, phaseOf } = share();
    add('one', 'local', first);
    await reconcileAll(['one']);
    add('two', 'local', second);
    await reconcileAll(['two']);
    fill();
    for (let round = 0; round < 3; round += 1) {
      await reconcileAll(['one', 'two']);
      fill();
    }
    await reconcileAll(['one', 'two']);
    expect([phaseOf('one'), phaseOf('two'), fetching().length]).toEqual(['Succeeded', 'Succeeded', 1]);
  });

  it.each([
    ['are cloned from a volume of another class that has them', undefined, ['registry'], 'snapshot'],
    [
      'are fetched again where only some nodes reach that volume',
      { required: {} },
      ['registry', 'registry'],
      undefined,
    ],
  ] as const)('%s', async (_what, nodeAffinity, sources, strategy) => {
    const { add, reconcileAll, fetching, fill, kube, phaseOf } = share();
    kube.seed(storageClasses, aStorageClass('other'));
    add('one');
    await reconcileAll(['one']);
    fill();
    await reconcileAll(['one']);
    kube.edit(persistentVolumeClaims, { namespace, name: 'one' }, ({ spec }) => {
      spec.volumeName = 'pv';
    });
    kube.seed(persistentVolumes, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'pv' },
      spec: { capacity: {}, accessModes: ['ReadWriteOnce'], ...(nodeAffinity && { nodeAffinity }) },
    });
    add('two', 'other');
    for (let round = 0; round < 3; round += 1) {
      await reconcileAll(['two']);
      fill();
    }
    await reconcileAll(['two']);
    expect([phaseOf('two'), fetching()]).toEqual(['Succeeded', sources]);
    const copied = kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === 'two');
    expect(recordOf(copied)?.strategy).toBe(strategy);
  });

  it('are not waited for in another class', async () => {
    const { add, reconcileAll, fetching, kube } = share();
    kube.seed(storageClasses, aStorageClass('other'));
    add('one');
    add('two', 'other');
    await reconcileAll(['one', 'two']);
    expect([fetching().length, kube.all(leases).length]).toEqual([2, 2]);
  });

  it('continue without a volume that was deleted, failed or lost', async () => {
    const { add, reconcileAll, fetching, kube } = share();
    add('one');
    await reconcileAll(['one']);
    add('two');
    kube.edit(dataVolumeKind.type, { namespace, name: 'one' }, (object) => {
      object.status = { ...object.status, phase: 'Failed' };
    });
    await reconcileAll(['two']);
    expect(fetching().length).toBe(2);
    await kube.delete(dataVolumeKind.type, { namespace, name: 'two' });
    kube.collectGarbage();
    add('three');
    await reconcileAll(['three']);
    expect(kube.all(leases)[0]?.metadata.annotations).toMatchObject({ 'bullion.dev/owner-name': 'three' });
  });

  it('are fetched once in whatever order they are created and reconciled', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const step = fc.oneof(
      fc.record({ do: fc.constant('add' as const), name: fc.constantFrom(...names) }),
      fc.record({ do: fc.constant('reconcile' as const), names: fc.subarray(names, { minLength: 1 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), async (steps) => {
        const { add, reconcileAll, fetching, fill, phaseOf } = share();
        const added = new Set<string>();
        for (const one of steps) {
          if (one.do === 'reconcile') await reconcileAll(one.names);
          else if (!added.has(one.name)) {
            added.add(one.name);
            add(one.name);
          }
        }
        for (let round = 0; round < 6; round += 1) {
          await reconcileAll(names);
          expect(fetching().length).toBe(Math.min(1, added.size));
          fill();
        }
        await reconcileAll(names);
        expect([...added].map(phaseOf)).toEqual([...added].map(() => 'Succeeded'));
      }),
      { numRuns: 60 },
    );
  });
});

const complete = ['Succeeded', 'Available', 'Imported'];
const fileKinds = ['version', 'disk', 'hypercloud', 'harvester'] as const;

describe('crons, images and data volumes that request the same file', () => {
  it.each(fileKinds.flatMap((first) => fileKinds.map((second) => [first, second] as const)))(
    'fetch it once: a %s first, then a %s',
    async (first, second) => {
      const { add, reconcileAll, fetching, fill, phaseOf, kube } = share();
      add('one', 'local', first);
      await reconcileAll(['one']);
      add('two', 'local', second);
      await reconcileAll(['two']);
      expect(fetching().length).toBeLessThanOrEqual(1);
      for (let round = 0; round < 5; round += 1) {
        await reconcileAll(['one', 'two']);
        fill();
      }
      await reconcileAll(['one', 'two']);
      expect(complete).toContain(phaseOf('one'));
      expect(complete).toContain(phaseOf('two'));
      expect(fetching()).toEqual(['http']);
      expect(kube.all(volumeSnapshots).filter(({ metadata }) => metadata.name.startsWith('clone-'))).toEqual([]);
    },
  );

  it.each<[first: string | undefined, second: string | undefined, fetches: number]>([
    ['login', 'login', 1],
    ['login', undefined, 2],
    [undefined, 'login', 2],
    ['login', 'other', 2],
  ])('are given what was fetched with Secret %s only for Secret %s: %d fetch', async (first, second, fetches) => {
    const { kube, reconcileAll, fetching, fill, phaseOf } = share();
    const add = (name: string, secretRef: string | undefined) =>
      kube.seed(
        hyperCloudImageKind.type,
        aHyperCloudImage({
          metadata: { namespace, name },
          spec: { checksum, storageClassName: 'local', source: { http: file, ...(secretRef && { secretRef }) } },
        }),
      );
    add('one', first);
    await reconcileAll(['one']);
    add('two', second);
    for (let round = 0; round < 5; round += 1) {
      await reconcileAll(['one', 'two']);
      fill();
    }
    await reconcileAll(['one', 'two']);
    expect([phaseOf('one'), phaseOf('two'), fetching().length]).toEqual(['Available', 'Available', fetches]);
  });

  it('report which volume they wait for', async () => {
    const { add, reconcileAll, kube } = share();
    add('one', 'local', 'version');
    await reconcileAll(['one']);
    add('two', 'local', 'hypercloud');
    await reconcileAll(['two']);
    const [image] = kube.all(hyperCloudImageKind.type);
    expect(image?.status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
      reason: 'SameContent',
      message: expect.stringContaining('DataVolume one fetches the same image'),
    });
  });

  it('can be cloned as long as one of them exists', async () => {
    const { add, reconcileAll, fetching, fill, phaseOf, remove } = share();
    const settle = async (...names: readonly string[]) => {
      for (let round = 0; round < 6; round += 1) {
        await reconcileAll(names);
        fill();
      }
      await reconcileAll(names);
    };
    add('one', 'local', 'hypercloud');
    await settle('one');
    add('two', 'local', 'version');
    await settle('two');
    await remove('one');
    add('three', 'local', 'harvester');
    await settle('three');
    await remove('two');
    add('four', 'local', 'hypercloud');
    await settle('four');
    // The Job that fetched went with the first; the others were copied.
    expect([phaseOf('three'), phaseOf('four'), fetching()]).toEqual(['Imported', 'Available', []]);
    await remove('three');
    await remove('four');
    add('five', 'local', 'version');
    await reconcileAll(['five']);
    expect(fetching().length).toBe(1);
  });

  it('fetch it separately when the existing volume is too large to be copied', async () => {
    const { add, reconcileAll, fetching, fill, phaseOf, kube } = share();
    add('one', 'local', 'version');
    await reconcileAll(['one']);
    fill();
    await reconcileAll(['one']);
    const small = aHyperCloudImage({
      metadata: { namespace, name: 'small' },
      spec: {
        checksum,
        source: { http: file },
        pvc: { resources: { requests: { storage: '600Mi' } }, storageClassName: 'local' },
      },
    });
    kube.seed(hyperCloudImageKind.type, small);
    await reconcileAll(['small']);
    expect([phaseOf('small'), fetching().length]).toEqual(['Pending', 2]);
  });

  it('fetch it once in whatever order they are created, deleted and reconciled', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const step = fc.oneof(
      fc.record({
        do: fc.constant('add' as const),
        name: fc.constantFrom(...names),
        kind: fc.constantFrom(...fileKinds),
      }),
      fc.record({ do: fc.constant('reconcile' as const), names: fc.subarray(names, { minLength: 1 }) }),
      fc.record({ do: fc.constant('fill' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        const { add, reconcileAll, fetching, fill, phaseOf } = share();
        const added = new Set<string>();
        for (const one of steps) {
          if (one.do === 'reconcile') await reconcileAll(one.names);
          else if (one.do === 'fill') fill();
          else if (!added.has(one.name)) {
            added.add(one.name);
            add(one.name, 'local', one.kind);
          }
        }
        for (let round = 0; round < 8; round += 1) {
          await reconcileAll(names);
          expect(fetching().length).toBeLessThanOrEqual(1);
          fill();
        }
        await reconcileAll(names);
        expect(fetching().length).toBe(Math.min(1, added.size));
        for (const name of added) expect(complete).toContain(phaseOf(name));
      }),
      { numRuns: 60 },
    );
  });
});
