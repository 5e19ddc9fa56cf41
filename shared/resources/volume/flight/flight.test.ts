import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { leases } from '#shared/api/foreign/coordination.ts';
import { jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { refOf } from '#shared/api/object.ts';
import { populatedPatch } from '#shared/populate/volume.ts';
import { type DriverDeps, drive } from '#shared/resources/driver.ts';
import { contentOf, leaseNameOf } from '#shared/resources/volume/flight/content.ts';
import { recordOf } from '#shared/resources/volume/record.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';
import { createTestDriver } from '#test/support/driver.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';

const namespace = 'golden';
const digest = `sha256:${'a'.repeat(64)}`;
const pinned = `docker://r.example/disk@${digest}`;
const transfer = (from: object, over: object = {}) =>
  ({ source: { type: 'transfer', from }, ...over }) as unknown as Pick<Volume, 'source' | 'checksum'>;
const hex = 'b'.repeat(64);

describe('the content of a volume', () => {
  it.each<[string, Pick<Volume, 'source' | 'checksum'>, string | undefined]>([
    ['a pinned image', transfer({ type: 'registry', url: pinned }), `registry ${digest} `],
    ['the same elsewhere', transfer({ type: 'registry', url: `docker://other/x:9@${digest}` }), `registry ${digest} `],
    [
      'for an architecture',
      transfer({ type: 'registry', url: pinned, architecture: 'arm64' }),
      `registry ${digest} arm64`,
    ],
    ['a tag', transfer({ type: 'registry', url: 'docker://r.example/disk:1' }), undefined],
    ['a file', transfer({ type: 'http', url: 'https://x/y' }), undefined],
    [
      'a file with its checksum',
      transfer({ type: 'http', url: 'https://x/y' }, { checksum: { algorithm: 'sha256', hex } }),
      `file sha256:${hex}`,
    ],
    [
      'a weak checksum',
      transfer({ type: 'http', url: 'https://x/y' }, { checksum: { algorithm: 'md5', hex } }),
      undefined,
    ],
    ['nothing', transfer({ type: 'blank' }), undefined],
  ])('%s', (_what, volume, content) => {
    expect(contentOf(volume)).toBe(content);
  });

  it('has one lease in each class', () => {
    expect(leaseNameOf('x', 'fast')).not.toBe(leaseNameOf('x', 'slow'));
    expect(leaseNameOf('x', 'fast')).toMatch(/^content-[0-9a-f]{40}$/);
  });
});

interface Shared {
  readonly deps: DriverDeps;
  readonly kube: MemoryKube;
  /** A version of a cron, the volume of an `image`, or `plain`. */
  readonly add: (name: string, storageClassName?: string, kind?: 'golden' | 'image' | 'plain') => DataVolume;
  readonly driveAll: (names: readonly string[]) => Promise<void>;
  /** Owners of volumes that a Job fetches from the registry, or did. */
  readonly fetching: () => readonly string[];
  readonly phaseOf: (name: string) => string | undefined;
  /** Every volume that is being filled becomes full, as by its Job or its storage. */
  readonly fill: () => void;
}

const labelsOf = {
  golden: { 'cdi.kubevirt.io/dataImportCron': 'cron' },
  image: { 'bullion.dev/role': 'volume' },
  plain: {},
} as const;

const share = (): Shared => {
  const deps = createTestDriver();
  const { kube } = deps;
  const all = () => kube.all(dataVolumeKind.type);
  return {
    deps,
    kube,
    add: (name, storageClassName = 'local', kind = 'golden') =>
      kube.seed(dataVolumeKind.type, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataVolume',
        metadata: {
          namespace,
          name,
          annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' },
          labels: labelsOf[kind],
        },
        spec: {
          source: { registry: { url: pinned } },
          storage: { storageClassName, resources: { requests: { storage: '1Gi' } } },
        },
      }),
    driveAll: async (names) => {
      const objects = all().filter(({ metadata }) => names.includes(metadata.name));
      await Promise.all(objects.map((object) => drive(deps, refOf(object), { which: 'all' })));
    },
    fetching: () =>
      kube
        .all(jobs)
        .filter(({ metadata }) => metadata.name.startsWith('import-'))
        .flatMap(({ spec }) => spec.template.spec.containers[0]?.env ?? [])
        .filter(({ name, value }) => name === 'BULLION_TRANSFER' && JSON.parse(value ?? '').source.type === 'registry')
        .map(() => 'registry'),
    phaseOf: (name) => all().find(({ metadata }) => metadata.name === name)?.status?.phase,
    fill: () => {
      for (const { metadata } of kube.all(volumeSnapshots)) {
        kube.edit(volumeSnapshots, { namespace, name: metadata.name }, (snapshot) => {
          snapshot.status = { readyToUse: true, restoreSize: '1Gi' };
        });
      }
      for (const claim of kube.all(persistentVolumeClaims)) {
        kube.edit(persistentVolumeClaims, { namespace, name: claim.metadata.name }, (edited) => {
          edited.status = { phase: 'Bound', capacity: { storage: '1Gi' } };
          const mark = populatedPatch(
            { inspection: { format: 'raw', compression: 'none', virtualSize: 2 ** 29 }, digests: {} },
            {},
          );
          const { metadata } = mark as { metadata: { annotations: Record<string, string> } };
          edited.metadata.annotations = { ...edited.metadata.annotations, ...metadata.annotations };
        });
      }
    },
  };
};

describe('volumes that want the same bytes', () => {
  it('have them fetched once; the others wait, say for whom, and are cloned', async () => {
    const { add, driveAll, fetching, phaseOf, fill, kube } = share();
    add('one');
    await driveAll(['one']);
    add('two');
    await driveAll(['two', 'one']);
    expect([fetching().length, kube.all(leases).length]).toEqual([1, 1]);
    const two = kube.all(dataVolumeKind.type).find(({ metadata }) => metadata.name === 'two');
    expect(two?.status?.conditions?.find(({ type }) => type === 'Ready')?.message).toContain(
      'DataVolume one fetches the same image',
    );
    fill();
    await driveAll(['one']);
    await driveAll(['two']);
    fill();
    await driveAll(['two']);
    expect(kube.all(persistentVolumeClaims).map((claim) => recordOf(claim)?.strategy)).toEqual([undefined, 'snapshot']);
    fill();
    await driveAll(['two']);
    expect([phaseOf('one'), phaseOf('two'), fetching().length]).toEqual(['Succeeded', 'Succeeded', 1]);
  });

  it('are not cloned from the disk of a machine, which may have been written to', async () => {
    const { add, driveAll, fetching, kube, fill } = share();
    add('disk', 'local', 'plain');
    await driveAll(['disk']);
    fill();
    await driveAll(['disk']);
    add('two', 'local', 'plain');
    add('golden');
    await driveAll(['two', 'golden']);
    expect(fetching().length).toBe(3);
    expect(kube.all(leases)[0]?.metadata.annotations).toMatchObject({ 'bullion.dev/owner-name': 'golden' });
  });

  it('are cloned from a golden volume, whoever they are', async () => {
    const { add, driveAll, fetching, fill } = share();
    add('golden');
    await driveAll(['golden']);
    fill();
    await driveAll(['golden']);
    add('disk', 'local', 'plain');
    await driveAll(['disk']);
    expect(fetching().length).toBe(1);
  });

  it.each<readonly [first: 'golden' | 'image', second: 'golden' | 'image']>([
    ['golden', 'image'],
    ['image', 'golden'],
  ])('are fetched once for a cron and an image of one content, the %s first', async (first, second) => {
    const { add, driveAll, fetching, fill, phaseOf } = share();
    add('one', 'local', first);
    await driveAll(['one']);
    add('two', 'local', second);
    await driveAll(['two']);
    fill();
    for (let round = 0; round < 3; round += 1) {
      await driveAll(['one', 'two']);
      fill();
    }
    await driveAll(['one', 'two']);
    expect([phaseOf('one'), phaseOf('two'), fetching().length]).toEqual(['Succeeded', 'Succeeded', 1]);
  });

  it('share nothing across classes', async () => {
    const { add, driveAll, fetching } = share();
    add('one');
    add('two', 'other');
    await driveAll(['one', 'two']);
    expect(fetching().length).toBe(1);
  });

  it('go on without the one that went, failed or lost its volume', async () => {
    const { add, driveAll, fetching, kube } = share();
    add('one');
    await driveAll(['one']);
    add('two');
    kube.edit(dataVolumeKind.type, { namespace, name: 'one' }, (object) => {
      object.status = { ...object.status, phase: 'Failed' };
    });
    await driveAll(['two']);
    expect(fetching().length).toBe(2);
    await kube.delete(dataVolumeKind.type, { namespace, name: 'two' });
    kube.collectGarbage();
    add('three');
    await driveAll(['three']);
    expect(kube.all(leases)[0]?.metadata.annotations).toMatchObject({ 'bullion.dev/owner-name': 'three' });
  });

  it('are fetched once in whatever order they come and are driven', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const step = fc.oneof(
      fc.record({ do: fc.constant('add' as const), name: fc.constantFrom(...names) }),
      fc.record({ do: fc.constant('drive' as const), names: fc.subarray(names, { minLength: 1 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), async (steps) => {
        const { add, driveAll, fetching, fill, phaseOf } = share();
        const added = new Set<string>();
        for (const one of steps) {
          if (one.do === 'drive') await driveAll(one.names);
          else if (!added.has(one.name)) {
            added.add(one.name);
            add(one.name);
          }
        }
        for (let round = 0; round < 6; round += 1) {
          await driveAll(names);
          expect(fetching().length).toBe(Math.min(1, added.size));
          fill();
        }
        await driveAll(names);
        expect([...added].map(phaseOf)).toEqual([...added].map(() => 'Succeeded'));
      }),
      { numRuns: 60 },
    );
  });
});
