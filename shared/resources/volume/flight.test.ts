import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { leases } from '#shared/api/foreign/coordination.ts';
import { jobs, persistentVolumeClaims, pods, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses, volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type KubeObject, type ResourceType, apiVersionOf, refOf } from '#shared/api/object.ts';
import { type DriverDeps, drive } from '#shared/resources/driver.ts';
import { recordOf } from '#shared/populate/clone-record.ts';
import { aHarvesterImage, aHyperCloudImage, aPod, aStorageClass, aSuccess } from '#test/support/builders.ts';
import { createTestDriver } from '#test/support/driver.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';

const namespace = 'golden';
const digest = `sha256:${'a'.repeat(64)}`;
const pinned = `docker://r.example/disk@${digest}`;
const hex = 'b'.repeat(64);
const lastUse = 'cdi.kubevirt.io/storage.import.lastUseTime';

/** A version of a cron, the volume of an `image` that stands on one, or `plain`, from a registry; or from a file: a version, the `disk` of a machine, and images that are volumes. */
type Kind = 'golden' | 'image' | 'plain' | 'version' | 'disk' | 'hypercloud' | 'harvester';

interface Shared {
  readonly deps: DriverDeps;
  readonly kube: MemoryKube;
  readonly add: (name: string, storageClassName?: string, kind?: Kind) => KubeObject;
  readonly driveAll: (names: readonly string[]) => Promise<void>;
  /** Deleted, with all that goes with it. */
  readonly remove: (name: string) => Promise<void>;
  /** Sources that a Job fetches from, or did. */
  readonly fetching: () => readonly string[];
  readonly phaseOf: (name: string) => string | undefined;
  /** What is under way comes to its end: Jobs, claims that the storage fills, snapshots. */
  readonly fill: () => void;
}

const labelsOf = {
  golden: { 'cdi.kubevirt.io/dataImportCron': 'cron' },
  version: { 'cdi.kubevirt.io/dataImportCron': 'cron' },
  image: { 'bullion.dev/role': 'volume' },
  plain: {},
  disk: {},
} as const;

const file = 'https://images.example/disk.img';
const checksum = `sha256:${hex}`;

const dataVolume = (
  name: string,
  storageClassName: string,
  kind: keyof typeof labelsOf,
): KubeObject & { spec: object } => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: {
    namespace,
    name,
    annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' },
    labels: labelsOf[kind],
  },
  spec: {
    source: kind === 'version' || kind === 'disk' ? { http: { url: file, checksum } } : { registry: { url: pinned } },
    storage: { storageClassName, resources: { requests: { storage: '1Gi' } } },
  },
});

const hyperCloudImage = (name: string, storageClassName: string): KubeObject & { spec: object } =>
  aHyperCloudImage({ metadata: { namespace, name }, spec: { storageClassName, checksum, source: { http: file } } });

const harvesterImage = (name: string, targetStorageClassName: string): KubeObject & { spec: object } => {
  const { spec, ...image } = aHarvesterImage({ metadata: { namespace, name } });
  return { ...image, spec: { ...spec, displayName: name, url: `${file}?mirror`, checksum, targetStorageClassName } };
};

const build = (name: string, storageClassName: string, kind: Kind): KubeObject => {
  if (kind === 'hypercloud') return hyperCloudImage(name, storageClassName);
  return kind === 'harvester' ? harvesterImage(name, storageClassName) : dataVolume(name, storageClassName, kind);
};

const types = [dataVolumeKind, hyperCloudImageKind, harvesterImageKind].map(
  ({ type }) => type as unknown as ResourceType,
);
const typeOf = ({ kind, apiVersion }: Pick<KubeObject, 'kind' | 'apiVersion'>): ResourceType =>
  types.find((type) => type.kind === kind && apiVersionOf(type) === apiVersion)!;

const report = aSuccess({
  inspection: { format: 'raw', compression: 'none', virtualSize: 2 ** 29 },
  digests: { sha256: hex },
});

const share = (): Shared => {
  const deps = createTestDriver();
  const { kube } = deps;
  const all = (): readonly KubeObject[] => types.flatMap((type) => kube.all(type));
  const find = (name: string) => all().find(({ metadata }) => metadata.name === name);
  return {
    deps,
    kube,
    add: (name, storageClassName = 'local', kind = 'golden') => {
      const object = build(name, storageClassName, kind);
      return kube.seed(typeOf(object), object);
    },
    remove: async (name) => {
      const object = find(name);
      if (object === undefined) return;
      await kube.delete(typeOf(object), { namespace, name });
      for (let pass = 0; pass < 3; pass += 1) {
        // oxlint-disable-next-line no-await-in-loop
        await drive(deps, refOf(object), { which: 'all' });
        kube.collectGarbage();
      }
    },
    driveAll: async (names) => {
      const objects = all().filter(({ metadata }) => names.includes(metadata.name));
      await Promise.all(objects.map((object) => drive(deps, refOf(object), { which: 'all' })));
    },
    fetching: () =>
      kube
        .all(jobs)
        .filter(({ metadata }) => metadata.name.startsWith('import-'))
        .flatMap(({ spec }) => spec.template.spec.containers[0]?.env ?? [])
        .filter(({ name }) => name === 'BULLION_TRANSFER')
        .map(({ value }) => (JSON.parse(value ?? '') as { source: { type: string } }).source.type)
        .filter((type) => type !== 'claim'),
    phaseOf: (name) => (find(name) as DataVolume | undefined)?.status?.phase,
    fill: () => {
      for (const { metadata } of kube.all(volumeSnapshots)) {
        const { name } = metadata;
        if (!kube.all(volumeSnapshotContents).some((content) => content.metadata.name === name))
          kube.seed(volumeSnapshotContents, {
            apiVersion: 'snapshot.storage.k8s.io/v1',
            kind: 'VolumeSnapshotContent',
            metadata: { name },
            spec: { driver: 'local.bullion.dev', deletionPolicy: 'Delete', sourceVolumeMode: 'Block' },
          } as never);
        kube.edit(volumeSnapshots, { namespace, name }, (snapshot) => {
          snapshot.status = { readyToUse: true, restoreSize: '1Gi', boundVolumeSnapshotContentName: name };
        });
      }
      for (const { metadata } of kube.all(persistentVolumeClaims))
        kube.edit(persistentVolumeClaims, { namespace, name: metadata.name }, (claim) => {
          claim.status = { phase: 'Bound', capacity: { storage: '1Gi' } };
        });
      for (const job of kube.all(jobs).filter(({ status }) => status?.succeeded === undefined)) {
        kube.edit(jobs, { namespace, name: job.metadata.name }, (edited) => {
          edited.status = { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] };
        });
        const pod = aPod(job, 'a', 'Succeeded', { report });
        kube.seed(pods, { ...pod, metadata: { ...pod.metadata, namespace, uid: `pod-of-${job.metadata.name}` } });
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

  it('are kept as a snapshot before a machine writes to its disk, and never cloned from that disk', async () => {
    const { add, driveAll, fetching, kube, fill, phaseOf, remove } = share();
    const settle = async (...names: readonly string[]) => {
      for (let round = 0; round < 6; round += 1) {
        await driveAll(names);
        fill();
      }
      await driveAll(names);
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

  it('are fetched by each disk where its class makes no snapshots', async () => {
    const { add, driveAll, fetching, kube, fill } = share();
    for (const { metadata } of kube.all(volumeSnapshotClasses)) await kube.delete(volumeSnapshotClasses, metadata);
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
    const { add, driveAll, fetching, fill, kube } = share();
    add('golden');
    await driveAll(['golden']);
    fill();
    await driveAll(['golden']);
    add('disk', 'local', 'plain');
    await driveAll(['disk']);
    expect(fetching().length).toBe(1);
    fill();
    await driveAll(['disk']);
    // Versions say when they were last cloned from.
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
    const { add, driveAll, fetching, kube } = share();
    kube.seed(storageClasses, aStorageClass('other'));
    add('one');
    add('two', 'other');
    await driveAll(['one', 'two']);
    expect([fetching().length, kube.all(leases).length]).toEqual([2, 2]);
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

const complete = ['Succeeded', 'Available', 'Imported'];
const fileKinds = ['version', 'disk', 'hypercloud', 'harvester'] as const;

describe('crons, images and data volumes that want the same file', () => {
  it.each(fileKinds.flatMap((first) => fileKinds.map((second) => [first, second] as const)))(
    'fetch it once: a %s first, then a %s',
    async (first, second) => {
      const { add, driveAll, fetching, fill, phaseOf, kube } = share();
      add('one', 'local', first);
      await driveAll(['one']);
      add('two', 'local', second);
      await driveAll(['two']);
      expect(fetching().length).toBeLessThanOrEqual(1);
      for (let round = 0; round < 5; round += 1) {
        await driveAll(['one', 'two']);
        fill();
      }
      await driveAll(['one', 'two']);
      expect(complete).toContain(phaseOf('one'));
      expect(complete).toContain(phaseOf('two'));
      expect(fetching()).toEqual(['http']);
      expect(kube.all(volumeSnapshots).filter(({ metadata }) => metadata.name.startsWith('clone-'))).toEqual([]);
    },
  );

  it('say for whom they wait', async () => {
    const { add, driveAll, kube } = share();
    add('one', 'local', 'version');
    await driveAll(['one']);
    add('two', 'local', 'hypercloud');
    await driveAll(['two']);
    const [image] = kube.all(hyperCloudImageKind.type);
    expect(image?.status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
      reason: 'SameContent',
      message: expect.stringContaining('DataVolume one fetches the same image'),
    });
  });

  it('have it for as long as one of them is left', async () => {
    const { add, driveAll, fetching, fill, phaseOf, remove } = share();
    const settle = async (...names: readonly string[]) => {
      for (let round = 0; round < 6; round += 1) {
        await driveAll(names);
        fill();
      }
      await driveAll(names);
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
    await driveAll(['five']);
    expect(fetching().length).toBe(1);
  });

  it('are fetched for alone where what is there is too large to be copied', async () => {
    const { add, driveAll, fetching, fill, phaseOf, kube } = share();
    add('one', 'local', 'version');
    await driveAll(['one']);
    fill();
    await driveAll(['one']);
    const small = aHyperCloudImage({
      metadata: { namespace, name: 'small' },
      spec: {
        checksum,
        source: { http: file },
        pvc: { resources: { requests: { storage: '600Mi' } }, storageClassName: 'local' },
      },
    });
    kube.seed(hyperCloudImageKind.type, small);
    await driveAll(['small']);
    expect([phaseOf('small'), fetching().length]).toEqual(['Pending', 2]);
  });

  it('are fetched once in whatever order they come, go and are driven', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const step = fc.oneof(
      fc.record({
        do: fc.constant('add' as const),
        name: fc.constantFrom(...names),
        kind: fc.constantFrom(...fileKinds),
      }),
      fc.record({ do: fc.constant('drive' as const), names: fc.subarray(names, { minLength: 1 }) }),
      fc.record({ do: fc.constant('fill' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        const { add, driveAll, fetching, fill, phaseOf } = share();
        const added = new Set<string>();
        for (const one of steps) {
          if (one.do === 'drive') await driveAll(one.names);
          else if (one.do === 'fill') fill();
          else if (!added.has(one.name)) {
            added.add(one.name);
            add(one.name, 'local', one.kind);
          }
        }
        for (let round = 0; round < 8; round += 1) {
          await driveAll(names);
          expect(fetching().length).toBeLessThanOrEqual(1);
          fill();
        }
        await driveAll(names);
        expect(fetching().length).toBe(Math.min(1, added.size));
        for (const name of added) expect(complete).toContain(phaseOf(name));
      }),
      { numRuns: 60 },
    );
  });
});
