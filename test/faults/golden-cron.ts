// A cron under faults: its source changes twice while events are lost and functions are killed. Called by golden-cron.test.ts and by main.ts.
import { type DataImportCron, type DataImportCronSpec, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { Observation } from '#shared/golden/poll/observation.ts';
import { validatorDigest } from '#shared/golden/version.ts';
import { NotFound } from '#shared/runtime/errors.ts';
import { orphansIn } from '#test/faults/invariants.ts';
import { aFault, aSnapshotClass, aStorageClass, aSuccess, testTime } from '#test/support/builders.ts';
import { isUpToDate } from '#test/support/golden.ts';
import type { Change } from '#test/support/memory-kube.ts';
import { createRandom } from '#test/support/random.ts';
import { calm, storm } from '#test/support/simulation/chaos.ts';
import type { AttemptScript } from '#test/support/simulation/attempts.ts';
import { type World, type WorldOptions, createWorld } from '#test/support/simulation/world.ts';

export interface CronScenario {
  readonly name: string;
  readonly spec?: Partial<DataImportCronSpec>;
  readonly attempt: WorldOptions['attempt'];
  /** Its source is a file without a published digest: it is published again twice, with the same bytes. */
  readonly isFile?: boolean;
  /** The seed determines when the user deletes it. */
  readonly isDeleted?: boolean;
}

const success: AttemptScript = { runMs: 20_000, end: aSuccess() };
const slow: AttemptScript = { runMs: 150_000, end: aSuccess() };
const flaky: AttemptScript = { runMs: 7_000, end: aFault() };

export const cronScenarios: readonly CronScenario[] = [
  { name: 'cron', attempt: () => success },
  { name: 'cron-flaky', attempt: (_mode, attempt) => (attempt < 3 ? flaky : success) },
  // Longer than the interval between versions: running imports are superseded.
  { name: 'cron-superseded', attempt: () => slow },
  { name: 'cron-keeps-one', spec: { importsToKeep: 1 }, attempt: () => success },
  {
    name: 'cron-file',
    spec: {
      importsToKeep: 1,
      template: {
        spec: {
          source: { http: { url: 'https://images.example/disk.img' } },
          storage: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } },
        },
      },
    },
    isFile: true,
    attempt: () => success,
  },
  { name: 'cron-deleted', spec: { retentionPolicy: 'None' }, isDeleted: true, attempt: () => success },
];

const namespace = 'default';
const key = { namespace, name: 'cron' };
const type = dataImportCronKind.type;
export const versionMs = 150_000;
/** Versions that are kept by default. */
const mostKept = 2;
export const stormMs = 8 * 60_000;
export const limitMs = 6 * 3_600_000;

export const digestOf = (char: string): string => `sha256:${char.repeat(64)}`;
const newest = `golden-${'c'.repeat(12)}`;

/** The digests that the bytes of a file have. */
const ofBytes = `golden-${'ab'.repeat(6)}`;

/** The source changes over time. */
export const sourceAt = (now: number, isFile: boolean): Observation => {
  const char = 'abc'[Math.min(2, Math.floor((now - testTime) / versionMs))] ?? 'c';
  if (isFile) return { is: 'found', digest: validatorDigest([char]), message: `it is ${char}`, memory: { etag: char } };
  return { is: 'found', digest: digestOf(char), message: `it is ${char}`, memory: { sourceDigest: digestOf(char) } };
};

export const aCron = (spec: Partial<DataImportCronSpec> = {}): DataImportCron => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataImportCron',
  metadata: key,
  spec: {
    // The faults include requested polls: those of a schedule would never let the simulation settle.
    schedule: '0 0 1 1 *',
    managedDataSource: 'golden',
    importsToKeep: mostKept,
    template: {
      spec: {
        source: { registry: { url: 'docker://registry.example/disk:latest' } },
        storage: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } },
      },
    },
    ...spec,
  },
});

export interface CronRun {
  readonly world: World;
  readonly violations: readonly string[];
}

const sourceIn = (world: World) =>
  world.kube.all(dataSourceKind.type).find(({ metadata }) => metadata.name === 'golden');
const cronIn = (world: World) => world.kube.all(dataImportCronKind.type)[0];

const isHeld = (world: World): boolean => {
  const cron = cronIn(world);
  return cron !== undefined && cron.metadata.deletionTimestamp === undefined;
};

export const isFull = (world: World, name: string): boolean => {
  const volume = world.kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === name);
  return world.cluster.contents.get(volume?.metadata.uid ?? '')?.isFilled === true;
};

/** What must never happen: a name that refers to a volume which does not exist, or is incomplete. */
const watch =
  (world: World, report: (text: string) => void) =>
  ({ type: change, object: { kind, metadata } }: Change): void => {
    const offered = sourceIn(world)?.spec.source.pvc?.name;
    if (offered === undefined || !isHeld(world)) return;
    if (change === 'DELETED') {
      const isLost = kind === 'PersistentVolumeClaim' && metadata.name === offered;
      if (isLost) report(`${offered} is gone while it is in use`);
    } else if (kind === 'DataSource' && !isFull(world, offered)) report(`${offered} is offered, and not full`);
  };

export const insist = async (world: World, what: () => Promise<unknown>): Promise<void> => {
  for (;;) {
    try {
      return void (await what());
    } catch {
      await new Promise<void>((resolve) => world.schedule(world.elapsed() + 5_000, resolve));
    }
  }
};

const play = (world: World, { spec, isDeleted }: CronScenario, seed: number): void => {
  const random = createRandom(seed + 7);
  const at = (ms: number, what: () => Promise<unknown>) => world.schedule(ms, () => void insist(world, what));
  at(0, () => world.kube.create(type, aCron(spec) as KubeObject));
  const pollNow = async (): Promise<void> => {
    if (cronIn(world) === undefined) return;
    const past = { annotations: { [cdiAnnotations.nextCronTime]: '2020-01-01T00:00:00Z' } };
    await world.kube.mergePatch(type, key, { metadata: past });
  };
  for (let poll = 0; poll < 6; poll += 1) at(random.below(stormMs), pollNow);
  at(stormMs + 60_000, pollNow);
  const remove = (): Promise<unknown> => {
    if (cronIn(world) === undefined) throw new NotFound('the cron is not there yet');
    return world.kube.delete(type, key);
  };
  if (isDeleted === true) at(30_000 + random.below(stormMs), async () => remove());
};

/** A cron with that deletion policy deletes all its versions. */
const leftIn = (world: World): readonly string[] =>
  world.kube
    .all()
    .filter(({ kind }) => /^(Data|PersistentVolumeClaim|Job|Pod)/.test(kind))
    .map(({ kind, metadata }) => `${kind} ${metadata.name} is left`);

const unfinishedIn = (world: World): readonly string[] =>
  world.kube
    .all(dataVolumes)
    .filter(({ status }) => status?.phase !== 'Succeeded')
    .map(({ metadata, status }) => `import ${metadata.name} was left ${status?.phase}`);

/** The faults in the final state. */
const endIn = (world: World, { spec, isDeleted, isFile }: CronScenario): readonly string[] => {
  const last = isFile === true ? ofBytes : newest;
  if (isDeleted === true) return leftIn(world);
  const offered = sourceIn(world)?.spec.source.pvc?.name;
  const volumes = world.kube.all(persistentVolumeClaims).map(({ metadata }) => metadata.name);
  const keep = spec?.importsToKeep ?? mostKept;
  return [
    ...(isUpToDate(cronIn(world)) ? [] : [`the cron is not up to date: ${JSON.stringify(cronIn(world)?.status)}`]),
    ...(offered === last ? [] : [`${offered} is in use in place of ${last}`]),
    ...(volumes.includes(last) ? [] : [`${last} is not there`]),
    ...(volumes.length <= keep ? [] : [`${volumes.length} versions are kept in place of ${keep}: ${volumes.join()}`]),
    ...unfinishedIn(world),
  ];
};

export const runCron = async (
  scenario: CronScenario,
  seed: number,
  over: Partial<WorldOptions> = {},
): Promise<CronRun> => {
  const violations: string[] = [];
  const options = {
    seed,
    chaos: storm,
    stormMs,
    attempt: scenario.attempt,
    observe: (_: unknown, now: number) => sourceAt(now, scenario.isFile === true),
  };
  const world = createWorld({ ...options, ...over });
  world.kube.seed(storageClasses, aStorageClass('local'));
  world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
  const report = (text: string) => void violations.push(`at ${Math.round(world.elapsed() / 1000)} s: ${text}`);
  world.kube.onChange(watch(world, report));
  play(world, scenario, seed);
  await world.run(limitMs);
  violations.push(...world.cluster.overwrites, ...world.bugs.map((bug) => `a bug was thrown: ${String(bug)}`));
  violations.push(...endIn(world, scenario), ...(scenario.isDeleted === true ? orphansIn(world) : []));
  return { world, violations };
};

export const runCalmCron = (scenario: CronScenario, seed: number): Promise<CronRun> =>
  runCron(scenario, seed, { chaos: calm });
