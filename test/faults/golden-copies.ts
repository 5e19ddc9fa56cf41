// Golden copies under faults: a version in one storage class, disks in another one, which cannot clone it. Called by golden-copies.test.ts.
import { toGrantText } from '#shared/access/permissions.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { aCron, insist, limitMs, sourceAt, stormMs, versionMs } from '#test/faults/golden-cron.ts';
import { aSnapshotClass, aStorageClass, aStorageProfile, aSuccess, testTime } from '#test/support/builders.ts';
import { createRandom } from '#test/support/random.ts';
import { calm, storm } from '#test/support/simulation/chaos.ts';
import { type World, type WorldOptions, createWorld } from '#test/support/simulation/world.ts';

export interface CopyScenario {
  readonly name: string;
  readonly marks: Readonly<Record<string, string>>;
  /** Whether the copies are there before the first disk. */
  readonly isAhead?: true;
  /** Versions are kept as snapshots. */
  readonly isSnapshot?: true;
  /** Newer versions come meanwhile, and one is kept. */
  readonly isMoving?: true;
}

export const copyScenarios: readonly CopyScenario[] = [
  { name: 'first-use', marks: { [annotations.copyOnFirstUse]: 'true' } },
  { name: 'prewarm', marks: { [annotations.prewarm]: 'fast' }, isAhead: true },
  { name: 'first-use-of-snapshots', marks: { [annotations.copyOnFirstUse]: 'true' }, isSnapshot: true },
  { name: 'prewarm-moving', marks: { [annotations.prewarm]: 'fast' }, isMoving: true },
];

const namespace = 'default';
const disks = [
  { name: 'one', namespace },
  { name: 'two', namespace },
  { name: 'far', namespace: 'team' },
];

const aDisk = (key: { readonly name: string; readonly namespace: string }): DataVolume => {
  const grants = ['clone-claim', 'clone-snapshot'].map((use) => ({ use, namespace, name: '*' }));
  const isFar = key.namespace !== namespace;
  return {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { ...key, annotations: isFar ? { [annotations.granted]: toGrantText(grants) ?? '' } : {} },
    spec: {
      sourceRef: { kind: 'DataSource', name: 'golden', namespace },
      storage: {
        storageClassName: 'fast',
        volumeMode: 'Block',
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '2Gi' } },
      },
    },
  };
};

const classes = [
  aStorageClass('slow', { provisioner: 'slow.example' }),
  aStorageClass('fast', { allowVolumeExpansion: true }),
].map((one) => ({ ...one, metadata: { ...one.metadata, uid: `class-${one.metadata.name}` } }));

const isCopy = ({ metadata }: KubeObject): boolean => metadata.labels?.[labels.copyOf] !== undefined;
const copiesIn = ({ kube }: World): readonly DataVolume[] => kube.all(dataVolumes).filter(isCopy);
const isThere = ({ status }: DataVolume): boolean => status?.phase === 'Succeeded';

const template = {
  spec: {
    source: { registry: { url: 'docker://registry.example/disk:latest' } },
    storage: {
      storageClassName: 'slow',
      volumeMode: 'Block',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
    },
  },
};

const play = (world: World, { marks, isAhead, isMoving }: CopyScenario, seed: number): void => {
  const random = createRandom(seed + 13);
  const cron = aCron({ template, ...(isMoving === true ? { importsToKeep: 1 } : {}) });
  const at = (ms: number, what: () => Promise<unknown>) => world.schedule(ms, () => void insist(world, what));
  at(0, () =>
    world.kube.create(dataImportCronKind.type, { ...cron, metadata: { ...cron.metadata, annotations: marks } }),
  );
  for (const key of disks) {
    at(random.below(120_000), () => {
      if (isAhead === true && !copiesIn(world).some(isThere)) throw new Error('the copy is not there yet');
      return world.kube.create(dataVolumes, aDisk(key));
    });
  }
  const past = { annotations: { [cdiAnnotations.nextCronTime]: '2020-01-01T00:00:00Z' } };
  for (let version = 1; isMoving === true && version <= 2; version += 1)
    at(version * versionMs + 5_000, () =>
      world.kube.mergePatch(dataImportCronKind.type, cron.metadata, { metadata: past }),
    );
};

const isFull = (world: World, { metadata }: KubeObject): boolean => {
  const claim = world.kube
    .all(persistentVolumeClaims)
    .find((one) => one.metadata.name === metadata.name && one.metadata.namespace === metadata.namespace);
  return world.cluster.contents.get(claim?.metadata.uid ?? '')?.isFilled === true;
};

/** Of versions that are gone, and what was made on the way. */
const leftIn = ({ kube }: World): readonly string[] => {
  const there = new Set(kube.all().map(({ metadata }) => metadata.uid));
  const stale = kube.all(dataVolumes).filter((one) => isCopy(one) && !there.has(one.metadata.labels?.[labels.copyOf]));
  const temporary = [...kube.all(volumeSnapshots), ...kube.all(persistentVolumeClaims)].filter(({ metadata }) =>
    /^(?:clone|restored)-/.test(metadata.name),
  );
  return [...stale, ...temporary].map(({ kind, metadata }) => `${kind} ${metadata.name} is left`);
};

const endIn = (world: World): readonly string[] => {
  const all = world.kube.all(dataVolumes);
  const missing = disks.filter(({ name }) => {
    const disk = all.find(({ metadata }) => metadata.name === name);
    return disk === undefined || !isThere(disk) || !isFull(world, disk);
  });
  return [
    ...missing.map(({ name }) => `disk ${name} is not there`),
    ...copiesIn(world)
      .filter((copy) => !isFull(world, copy))
      .map(({ metadata }) => `copy ${metadata.name} is not complete`),
    ...leftIn(world),
  ];
};

/** The strategies of the disks, and the number of copies. */
const summaryOf = (world: World) => ({
  copies: copiesIn(world).length,
  strategies: disks.map(({ name }) => {
    const disk = world.kube.all(dataVolumes).find(({ metadata }) => metadata.name === name);
    return disk?.status?.detail?.cloneStrategy;
  }),
});

export const runCopies = async (scenario: CopyScenario, seed: number, over: Partial<WorldOptions> = {}) => {
  const world = createWorld({
    seed,
    chaos: storm,
    stormMs,
    hasVolumes: true,
    attempt: () => ({ runMs: 20_000, end: aSuccess() }),
    observe: (_: unknown, now: number) => sourceAt(scenario.isMoving === true ? now : testTime, false),
    ...over,
  });
  for (const one of classes) world.kube.seed(storageClasses, one);
  world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
  if (scenario.isSnapshot === true) {
    world.kube.seed(volumeSnapshotClasses, aSnapshotClass('slow-snapshots', { driver: 'slow.example' }));
    const profile = aStorageProfile({ spec: { dataImportCronSourceFormat: 'snapshot' } });
    world.kube.seed(storageProfiles, { ...profile, metadata: { name: 'slow' } });
  }
  play(world, scenario, seed);
  await world.run(limitMs);
  const violations = [
    ...world.cluster.overwrites,
    ...world.bugs.map((bug) => `a bug was thrown: ${String(bug)}`),
    ...endIn(world),
  ];
  return { world, violations, summary: summaryOf(world) };
};

export const runCalmCopies = (scenario: CopyScenario, judge?: WorldOptions['judge']) =>
  runCopies(scenario, 1, { chaos: calm, ...(judge && { judge }) });
