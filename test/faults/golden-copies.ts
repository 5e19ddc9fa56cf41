// Golden copies under faults: a version in one storage class, disks in another one, which cannot clone it. Called by golden-copies.test.ts.
import { toGrantText } from '#shared/access/permissions.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { aCron, insist, limitMs, sourceAt, stormMs } from '#test/faults/golden-cron.ts';
import { aSnapshotClass, aStorageClass, aSuccess, testTime } from '#test/support/builders.ts';
import { createRandom } from '#test/support/random.ts';
import { calm, storm } from '#test/support/simulation/chaos.ts';
import { type World, type WorldOptions, createWorld } from '#test/support/simulation/world.ts';

export interface CopyScenario {
  readonly name: string;
  readonly marks: Readonly<Record<string, string>>;
  /** Whether the copies are there before the first disk. */
  readonly isAhead?: true;
}

export const copyScenarios: readonly CopyScenario[] = [
  { name: 'first-use', marks: { [annotations.copyOnFirstUse]: 'true' } },
  { name: 'prewarm', marks: { [annotations.prewarm]: 'fast' }, isAhead: true },
];

const namespace = 'default';
const disks = [
  { name: 'one', namespace },
  { name: 'two', namespace },
  { name: 'far', namespace: 'team' },
];

const aDisk = (key: { readonly name: string; readonly namespace: string }): DataVolume => {
  const grants = [{ use: 'clone-claim', namespace, name: '*' }];
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
const isCronDone = (world: World): boolean =>
  world.kube.all(dataVolumes).some(({ status }) => status?.phase === 'Succeeded');

const play = (world: World, { marks, isAhead }: CopyScenario, seed: number): void => {
  const random = createRandom(seed + 13);
  const cron = aCron({
    template: {
      spec: {
        source: { registry: { url: 'docker://registry.example/disk:latest' } },
        storage: {
          storageClassName: 'slow',
          volumeMode: 'Block',
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
        },
      },
    },
  });
  const at = (ms: number, what: () => Promise<unknown>) => world.schedule(ms, () => void insist(world, what));
  at(0, () =>
    world.kube.create(dataImportCronKind.type, { ...cron, metadata: { ...cron.metadata, annotations: marks } }),
  );
  for (const key of disks) {
    at(random.below(120_000), async () => {
      if (
        isAhead === true &&
        !world.kube.all(dataVolumes).some((one) => isCopy(one) && one.status?.phase === 'Succeeded')
      )
        throw new Error('the copy is not there yet');
      if (!isCronDone(world)) throw new Error('there is no version yet');
      return world.kube.create(dataVolumes, aDisk(key));
    });
  }
};

/** How each disk came to be, and how many copies there are. */
const endIn = (world: World): readonly string[] => {
  const all = world.kube.all(dataVolumes);
  const claims = world.kube.all(persistentVolumeClaims);
  const isFull = ({ metadata }: KubeObject): boolean => {
    const claim = claims.find(
      (one) => one.metadata.name === metadata.name && one.metadata.namespace === metadata.namespace,
    );
    return world.cluster.contents.get(claim?.metadata.uid ?? '')?.isFilled === true;
  };
  const copies = all.filter(isCopy);
  const made = disks.map((key) =>
    all.find(({ metadata }) => metadata.name === key.name && !isCopy({ metadata } as KubeObject)),
  );
  return [
    ...made.flatMap((disk, index) =>
      disk?.status?.phase === 'Succeeded' && isFull(disk)
        ? []
        : [`disk ${disks[index]?.name} is not there: ${JSON.stringify(disk?.status)}`],
    ),
    ...copies.filter((copy) => !isFull(copy)).map(({ metadata }) => `copy ${metadata.name} is not complete`),
    ...world.kube.all(volumeSnapshots).map(({ metadata }) => `snapshot ${metadata.name} is left`),
  ];
};

/** The strategies of the disks, and the number of copies. */
const summaryOf = (world: World) => ({
  copies: world.kube.all(dataVolumes).filter(isCopy).length,
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
    observe: () => sourceAt(testTime, false),
    ...over,
  });
  for (const one of classes) world.kube.seed(storageClasses, one);
  world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
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
