// Which copies of golden images are made ahead, which go, and what a disk that uses one at that moment keeps.
import { beforeEach, describe, expect, it } from 'vitest';
import type { GoldenImagePolicy } from '#shared/api/bullion/golden-image-policy.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import {
  type PersistentVolumeClaim,
  kubeEvents,
  persistentVolumeClaims,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { isoTime } from '#shared/populate/state.ts';
import { populatedMark } from '#shared/populate/population.ts';
import { buildCopy } from '#shared/populate/volume/golden-copy.ts';
import { planCopies } from '#shared/resources/golden-copies/plan.ts';
import { createGoldenCopies } from '#shared/resources/golden-copies/sync.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { ensureProfiles } from '#shared/resources/storage-profile/ensure.ts';
import { aPopulation, aStorageClass, testTime } from '#test/support/builders.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';

const namespace = 'golden-images';
const hour = 3_600_000;
const day = 24 * hour;

const aCron = (marks: Readonly<Record<string, string>> = { [annotations.prewarm]: 'fast' }): DataImportCron => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataImportCron',
  metadata: { namespace, name: 'fedora', uid: 'cron', annotations: marks },
  spec: { schedule: '', managedDataSource: 'fedora' },
  status: {
    lastImportedPVC: { namespace, name: 'fedora-b' },
    lastImportTimestamp: isoTime(testTime - 60_000),
  },
});
const aVersion = (name: string): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    namespace,
    name,
    uid: name,
    labels: { [cdiLabels.cron]: 'fedora' },
    annotations: { ...populatedMark(aPopulation), 'volume.kubernetes.io/storage-provisioner': 'slow.example' },
  },
  spec: { storageClassName: 'slow', volumeMode: 'Block', resources: { requests: { storage: '1Gi' } } },
  status: { phase: 'Bound', capacity: { storage: '1Gi' } },
});
const classNamed = (name: string, over = {}) => {
  const built = aStorageClass(name, { allowVolumeExpansion: true, ...over });
  return { ...built, metadata: { ...built.metadata, uid: `class-${name}` } };
};
const fast = classNamed('fast');

interface Aged {
  readonly version?: string;
  /** Milliseconds since it was made, and since a disk was made from it. */
  readonly age?: number;
  readonly unused?: number;
  readonly status?: DataVolume['status'];
  readonly labels?: Readonly<Record<string, string>>;
}
const aCopy = ({ version = 'fedora-b', age = 0, unused, status, labels: more }: Aged = {}): DataVolume => {
  const built = buildCopy(aVersion(version), { storageClass: fast, profile: undefined, volumeMode: 'Block' });
  const used = unused === undefined ? {} : { [cdiAnnotations.lastUseTime]: isoTime(testTime - unused) };
  return {
    ...built,
    metadata: {
      ...built.metadata,
      creationTimestamp: isoTime(testTime - age),
      labels: { ...built.metadata.labels, ...more },
      annotations: { ...built.metadata.annotations, ...used },
    },
    status: status ?? { phase: 'Succeeded', claimName: built.metadata.name },
  };
};
const aPolicy = (
  spec: Partial<GoldenImagePolicy['spec']>,
  status: GoldenImagePolicy['status'] = {},
): GoldenImagePolicy => ({
  apiVersion: 'bullion.dev/v1alpha1',
  kind: 'GoldenImagePolicy',
  metadata: { namespace, name: 'fedora' },
  spec: { dataImportCrons: { names: ['fedora'] }, channels: [{ name: 'stable', dataSource: 'fedora' }], ...spec },
  status,
});
const versions = ['fedora-a', 'fedora-b'].map((name) => ({
  name,
  cron: 'fedora',
  arrived: isoTime(testTime),
  state: 'Verified' as const,
}));
const channels = [{ name: 'stable', dataSource: 'fedora', version: 'fedora-a', reason: 'Soaking', message: '' }];

describe('golden copies that are made ahead', () => {
  it.each<
    [
      what: string,
      cron: DataImportCron,
      policies: readonly GoldenImagePolicy[],
      copies: readonly DataVolume[],
      wanted: readonly string[],
    ]
  >([
    ['none are asked for', aCron({}), [], [], []],
    ['the newest version is to be', aCron(), [], [], ['fedora-b fast']],
    ['it is on its way', aCron(), [], [aCopy({ status: {} })], []],
    ['only an older one is there', aCron(), [], [aCopy({ version: 'fedora-a' })], ['fedora-b fast']],
    ['in several classes', aCron({ [annotations.prewarm]: 'fast, fast,gone,' }), [], [aCopy()], ['fedora-b gone']],
    ['a policy decides alone', aCron(), [aPolicy({})], [], []],
    [
      'what a channel has, and what is yet to come there',
      aCron({}),
      [aPolicy({ copies: { prewarm: ['fast'] } }, { versions, channels })],
      [],
      ['fedora-b fast', 'fedora-a fast'],
    ],
    [
      'no version that is marked as bad',
      aCron({}),
      [aPolicy({ copies: { prewarm: ['fast'] }, bad: [{ version: 'fedora-b', reason: 'x' }] }, { versions, channels })],
      [],
      ['fedora-a fast'],
    ],
  ])('%s', (_what, cron, policies, copies, expected) => {
    const { wanted } = planCopies({ crons: [cron], policies, copies }, { classes: [fast], now: testTime });
    expect([...new Set(wanted.map(({ version, className }) => `${version} ${className}`))]).toEqual(expected);
  });

  it('are looked for each minute after an import, and every ten minutes later', () => {
    const at = (now: number) =>
      planCopies({ crons: [aCron()], policies: [], copies: [] }, { classes: [fast], now }).wanted.length;
    const later = Math.ceil((testTime + hour) / 600_000) * 600_000;
    expect([testTime, later, later + 60_000].map(at)).toEqual([1, 1, 0]);
  });
});

describe('golden copies that go', () => {
  const onUse = aCron({ [annotations.copyOnFirstUse]: 'true' });
  const bad = aPolicy({ copies: { onFirstUse: true }, bad: [{ version: 'fedora-b', reason: 'x' }] });
  it.each<
    [
      what: string,
      copy: DataVolume,
      seen: {
        crons?: readonly DataImportCron[];
        policies?: readonly GoldenImagePolicy[];
        classes?: readonly (typeof fast)[];
      },
      why: string | undefined,
    ]
  >([
    ['stays for a week', aCopy({ age: 6.9 * day }), {}, undefined],
    ['goes after a week', aCopy({ age: 7 * day }), {}, 'no disk'],
    ['stays for a week after a disk', aCopy({ age: 30 * day, unused: 6 * day }), {}, undefined],
    ['goes a week after the last disk', aCopy({ age: 30 * day, unused: 8 * day }), {}, 'no disk'],
    [
      'goes when its policy says so',
      aCopy({ age: 2 * day }),
      { policies: [aPolicy({ copies: { unusedFor: '1d' } })] },
      'no disk',
    ],
    [
      'stays two hours whatever is said',
      aCopy({ age: hour }),
      { policies: [aPolicy({ copies: { unusedFor: '1s' } })] },
      undefined,
    ],
    ['stays while it is to be made ahead', aCopy({ age: 99 * day }), { crons: [aCron()] }, undefined],
    ['goes once another version is', aCopy({ version: 'fedora-a', age: 8 * day }), { crons: [aCron()] }, 'no disk'],
    ['stays for a week without its cron', aCopy({ age: 6 * day }), { crons: [] }, undefined],
    ['goes without its cron', aCopy({ age: 8 * day }), { crons: [] }, 'no disk'],
    ['goes with its class', aCopy({ age: 3 * hour }), { classes: [] }, 'class fast is gone'],
    [
      'goes with a class of the same name',
      aCopy({ age: 3 * hour }),
      { classes: [{ ...fast, metadata: { ...fast.metadata, uid: 'again' } }] },
      'class fast is gone',
    ],
    ['goes when its version is bad', aCopy({ age: 3 * hour }), { policies: [bad] }, 'marked as bad'],
    [
      'stays while a disk may be on its way from it',
      aCopy({ age: 9 * hour, unused: hour }),
      { policies: [bad] },
      undefined,
    ],
    [
      'goes when it failed',
      aCopy({ age: 3 * hour, status: { phase: 'Failed' } }),
      { crons: [aCron()] },
      'could not be made',
    ],
    ['stays while it is made', aCopy({ age: 3 * hour, status: { claimName: 'x' } }), {}, undefined],
    ['stays while it is locked', aCopy({ age: 99 * day, labels: { [labels.protected]: 'true' } }), {}, undefined],
  ])('one %s', (_what, copy, { crons = [onUse], policies = [], classes = [fast] }, why) => {
    const { unwanted } = planCopies({ crons, policies, copies: [copy] }, { classes, now: testTime });
    const told = unwanted.map((one) => one.why).join();
    expect({ isGoing: unwanted.length > 0, told }).toMatchObject({
      isGoing: why !== undefined,
      told: expect.stringContaining(why ?? ''),
    });
  });
});

describe('a tick', () => {
  let deps: ReconcileDeps & { readonly kube: MemoryKube };
  let kube: MemoryKube;
  beforeEach(() => {
    deps = createTestReconciler();
    kube = deps.kube;
    for (const one of [
      classNamed('slow', { provisioner: 'slow.example' }),
      fast,
      classNamed('plain', { provisioner: 'plain.example' }),
    ])
      kube.seed(storageClasses, one);
    kube.seed(persistentVolumeClaims, aVersion('fedora-b'));
  });

  const run = async (meanwhile: () => void = () => {}): Promise<void> => {
    const copies = createGoldenCopies(await ensureProfiles(deps));
    for (const object of [...kube.all(dataVolumes), ...kube.all(dataImportCronKind.type)]) copies.visit(object);
    meanwhile();
    await copies.carryOut(deps);
  };
  const copiesNow = () =>
    kube.all(dataVolumes).map(({ spec }) => [spec.source?.pvc?.name, spec.storage?.storageClassName]);

  it('copies a version ahead once, owned by the version, and says which class gains nothing', async () => {
    kube.seed(dataImportCronKind.type, aCron({ [annotations.prewarm]: 'fast,plain,slow,gone' }));
    await run();
    await run();
    expect(copiesNow()).toEqual([['fedora-b', 'fast']]);
    const uid = kube.all(persistentVolumeClaims)[0]?.metadata.uid;
    expect(kube.all(dataVolumes)[0]?.metadata.ownerReferences).toMatchObject([{ kind: 'PersistentVolumeClaim', uid }]);
    const told = kube
      .all(kubeEvents)
      .map(({ reason, message }) => `${reason} ${message}`)
      .toSorted();
    expect(told).toEqual([
      expect.stringMatching(/^NotPrewarmed fedora-b .* class gone: there is no storage class gone; /),
      expect.stringMatching(/^NotPrewarmed fedora-b .* class plain: class plain cannot clone volumes/),
    ]);
  });

  it('makes no copy of a claim with the name of a version', async () => {
    kube.edit(persistentVolumeClaims, { namespace, name: 'fedora-b' }, ({ metadata }) => {
      metadata.labels = {};
    });
    kube.seed(dataImportCronKind.type, aCron());
    await run();
    expect(copiesNow()).toEqual([]);
  });

  it('removes what is unused, but nothing that a disk was made from since, or whose claim is locked', async () => {
    const key = { namespace, name: kube.seed(dataVolumes, aCopy({ age: 8 * day })).metadata.name };
    await run(() =>
      kube.edit(dataVolumes, key, ({ metadata }) => {
        metadata.annotations = { ...metadata.annotations, [cdiAnnotations.lastUseTime]: isoTime(testTime) };
      }),
    );
    expect(copiesNow()).toHaveLength(1);
    kube.edit(dataVolumes, key, ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, [cdiAnnotations.lastUseTime]: isoTime(testTime - 8 * day) };
    });
    kube.seed(persistentVolumeClaims, {
      ...aVersion(key.name),
      metadata: { ...key, labels: { [labels.protected]: 'true' } },
    });
    await run();
    expect(copiesNow()).toHaveLength(1);
    kube.edit(persistentVolumeClaims, key, ({ metadata }) => {
      metadata.labels = {};
    });
    await run();
    expect(copiesNow()).toEqual([]);
  });
});
