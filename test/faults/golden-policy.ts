// A policy under faults: versions are imported, one is marked as bad, a channel is pinned for a while, while events are lost, clocks jump and functions
// are killed. Called by golden-policy.test.ts and by main.ts.
import {
  type GoldenImagePolicy,
  type VersionStatus,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import { jobs, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { checkRole, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { keeperOf } from '#shared/golden/rollout/policies.ts';
import { deprecationIn } from '#shared/golden/rollout/deprecation.ts';
import { isoTime } from '#shared/populate/state.ts';
import { versionOfSource } from '#shared/resources/data-source/point.ts';
import { aCron, insist, isFull, limitMs, sourceAt, stormMs } from '#test/faults/golden-cron.ts';
import { aSnapshotClass, aStorageClass, aSuccess, testTime } from '#test/support/builders.ts';
import type { Change } from '#test/support/memory-kube.ts';
import { createRandom } from '#test/support/random.ts';
import { calm, storm } from '#test/support/simulation/chaos.ts';
import { type World, type WorldOptions, createWorld } from '#test/support/simulation/world.ts';

export interface PolicyScenario {
  readonly name: string;
  /** A version that a user marks as bad, at a time determined by the seed. */
  readonly bad?: 'b' | 'c';
  /** Whether a user pins the last channel to the first version for a while. */
  readonly isPinned?: true;
  /** Versions have to pass a check and to start. */
  readonly isChecked?: true;
  /** Versions age within the storm, are marked by hand, and go once nothing keeps them. */
  readonly isEnding?: true;
}

export const policyScenarios: readonly PolicyScenario[] = [
  { name: 'policy' },
  { name: 'policy-bad', bad: 'b' },
  { name: 'policy-newest-bad', bad: 'c' },
  { name: 'policy-pinned', bad: 'c', isPinned: true },
  { name: 'policy-checked', bad: 'b', isChecked: true },
  { name: 'policy-ending', isPinned: true, isEnding: true },
];

const { type } = goldenImagePolicyKind;
const namespace = 'default';
const key = { namespace, name: 'policy' };
const nameOf = (char: string): string => `golden-${char.repeat(12)}`;
const reason = 'made up';

const aPolicy: GoldenImagePolicy = {
  apiVersion: 'bullion.dev/v1alpha1',
  kind: 'GoldenImagePolicy',
  metadata: key,
  spec: {
    dataImportCrons: { names: ['cron'] },
    channels: [
      { name: 'candidate', dataSource: 'golden-candidate' },
      { name: 'stable', dataSource: 'golden', after: { channel: 'candidate', soak: '1m' } },
    ],
  },
};

const verify: GoldenImagePolicy['spec']['verify'] = {
  boot: { until: 'Running', runningFor: '10s' },
  checks: [{ name: 'scan', image: 'registry.example/scan' }],
};

const ending: Partial<GoldenImagePolicy['spec']> = {
  deprecation: { after: '2m', obsoleteAfter: '4m', replacement: 'golden-candidate' },
  retention: { keep: 1, maxAge: '1m', unusedFor: '1m' },
};

const policyIn = (world: World): GoldenImagePolicy | undefined => world.kube.all(type)[0];
const offeredIn = (world: World): readonly string[] =>
  world.kube.all(dataSourceKind.type).flatMap((source) => versionOfSource(source) ?? []);

interface Move {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/** What is wrong with a change of a channel under the settings at that time; `left`: versions that the channel left because they were bad. */
const faultsOf = (world: World, { name, from, to }: Move, left: Set<string>): readonly string[] => {
  const { bad = [], pins = {} } = policyIn(world)?.spec ?? {};
  const isMarked = bad.some(({ version }) => version === from);
  const isPinned = Object.values(pins).some(({ version }) => version === to);
  if (isMarked) left.add(`${name}/${from}`);
  return [
    ...(to < from && !isMarked && !isPinned ? [`${name} went back from ${from} to ${to}`] : []),
    ...(left.has(`${name}/${to}`) ? [`${name} returned to ${to}`] : []),
  ];
};

/** What must never happen: a name that refers to nothing or to an incomplete volume, one that goes back automatically, or one that returns to a bad version. */
const watch = (world: World, report: (text: string) => void) => {
  const last = new Map<string, string>();
  const left = new Set<string>();
  const move = (name: string, to: string | undefined): void => {
    const from = last.get(name);
    if (to === undefined) {
      if (from !== undefined) report(`${name} came to nothing`);
      return;
    }
    last.set(name, to);
    if (!isFull(world, to)) report(`${name} leads to ${to}, which is not full`);
    if (from !== undefined && from !== to) faultsOf(world, { name, from, to }, left).forEach(report);
  };
  return ({ type: change, object }: Change): void => {
    const { kind, metadata } = object;
    if (kind === 'DataSource' && change !== 'DELETED') move(metadata.name, versionOfSource(object as DataSource));
    if (change !== 'DELETED' || kind !== 'PersistentVolumeClaim') return;
    if (offeredIn(world).includes(metadata.name)) report(`${metadata.name} is gone while it is in use`);
    const { pins = {} } = policyIn(world)?.spec ?? {};
    const isPinned = Object.values(pins).some(({ version }) => version === metadata.name);
    if (isPinned) report(`${metadata.name} is gone while a channel is pinned to it`);
  };
};

/** What checks left behind. */
const leftIn = (world: World): readonly string[] =>
  [...world.kube.all(dataVolumes), ...world.kube.all(jobs), ...world.kube.all(virtualMachineInstances)]
    .filter(({ metadata }) => metadata.labels?.[labels.role] === checkRole)
    .map(({ kind, metadata }) => `${kind} ${metadata.name} is left`);

/** A stand-in for KubeVirt: machines whose disk is full come to run. */
const startMachines = (world: World): void => {
  world.kube.onChange(({ type: change, object }) => {
    if (change !== 'ADDED' || object.kind !== virtualMachineInstances.kind) return;
    const startedAt = world.elapsed() + 2_000;
    world.schedule(startedAt, () =>
      world.kube.edit(virtualMachineInstances, object.metadata, (machine) => {
        const phaseTransitionTimestamp = isoTime(testTime + startedAt);
        machine.status = {
          phase: 'Running',
          phaseTransitionTimestamps: [{ phase: 'Running', phaseTransitionTimestamp }],
        };
      }),
    );
  });
};

const play = (world: World, { bad, isPinned, isChecked, isEnding }: PolicyScenario, seed: number): void => {
  const random = createRandom(seed + 11);
  const at = (ms: number, what: () => Promise<unknown>) => world.schedule(ms, () => void insist(world, what));
  at(0, () => world.kube.create(dataImportCronKind.type, aCron({ importsToKeep: 1 }) as KubeObject));
  const more = { ...(isChecked === true ? { verify } : {}), ...(isEnding === true ? ending : {}) };
  const policy = { ...aPolicy, spec: { ...aPolicy.spec, ...more } };
  at(0, () => world.kube.create(type, policy as GoldenImagePolicy));
  if (isChecked === true) startMachines(world);
  const pollNow = () =>
    world.kube.mergePatch(
      dataImportCronKind.type,
      { namespace, name: 'cron' },
      { metadata: { annotations: { [cdiAnnotations.nextCronTime]: '2020-01-01T00:00:00Z' } } },
    );
  for (let poll = 0; poll < 8; poll += 1) at(10_000 + random.below(stormMs), pollNow);
  at(stormMs + 60_000, pollNow);
  const decide = (spec: object) => world.kube.mergePatch(type, key, { spec });
  if (bad !== undefined) at(30_000 + random.below(stormMs), () => decide({ bad: [{ version: nameOf(bad), reason }] }));
  if (isEnding === true) {
    const mark = { channel: 'stable', obsolete: true, reason };
    const undone = stormMs + 90_000;
    at(30_000 + random.below(stormMs), async () => world.elapsed() < undone && decide({ deprecated: [mark] }));
    at(undone, () => decide({ deprecated: [] }));
    at(3 * stormMs, pollNow);
  }
  if (isPinned !== true) return;
  const begin = 60_000 + random.below(stormMs);
  const end = begin + 120_000 + random.below(stormMs);
  // Admission refuses to pin what the policy does not know: an import that has not arrived may be superseded.
  const pin = (time: number): void =>
    at(time, async () => {
      const isKnown = policyIn(world)?.status?.versions?.some(({ name }) => name === nameOf('a'));
      // An attempt that is repeated after a fault does not undo what was decided later.
      if (world.elapsed() >= end) return undefined;
      if (isKnown === true) return decide({ pins: { stable: { version: nameOf('a'), reason } } });
      if (time + 30_000 < end) pin(time + 30_000);
      return undefined;
    });
  pin(begin);
  at(end, () => decide({ pins: { stable: null } }));
};

/** What is marked as at its end, after hours: everything that is there. */
const marksIn = (world: World): readonly (string | undefined)[] =>
  [...world.kube.all(dataSourceKind.type), ...world.kube.all(persistentVolumeClaims)].map(
    (object) => deprecationIn(object)?.state,
  );

/** What nothing keeps any more is gone. */
const leftOvers = (world: World): readonly string[] => {
  const policy = policyIn(world);
  const names = world.kube.all(persistentVolumeClaims).map(({ metadata }) => metadata.name);
  return policy === undefined ? names : names.filter((name) => keeperOf(policy)(name) === undefined);
};

const endingFaults = (world: World, isEnding = false): Readonly<Record<string, boolean>> => ({
  'a mark is not what the status says': isEnding && marksIn(world).some((state) => state !== 'Obsolete'),
  'something was not collected': isEnding && leftOvers(world).length > 0,
});

/** The faults in the final state. */
const endIn = (world: World, { bad, isEnding }: PolicyScenario): readonly string[] => {
  const policy = policyIn(world);
  const versions = policy?.status?.versions ?? [];
  // The newest may be the only one that was imported, or that a channel ever had: an older one that came with it is collected.
  const isNoChoice = ({ state, held }: VersionStatus) => state === 'Bad' || (state === 'Gone' && held === undefined);
  if (bad === 'c' && versions.every(isNoChoice)) return [];
  const good = versions.filter(({ state }) => state === 'Verified').at(-1)?.name;
  const sources = world.kube.all(dataSourceKind.type);
  const wrong = sources.filter((source) => versionOfSource(source) !== good);
  const faults: Readonly<Record<string, boolean>> = {
    'there is no good version': good === undefined,
    [`${good} is bad`]: good === nameOf(bad ?? ''),
    [`${good} is the newest`]: bad !== 'c' && good !== nameOf('c'),
    'a channel has no DataSource': sources.length !== 2,
    'nobody was told of what happened': policy?.status?.pendingEvents !== undefined,
    ...endingFaults(world, isEnding),
    [`not all lead to ${good}: ${JSON.stringify(policy?.status)}`]: wrong.length > 0,
  };
  return Object.keys(faults).filter((fault) => faults[fault] === true);
};

export const runPolicy = async (
  scenario: PolicyScenario,
  seed: number,
  over: Partial<WorldOptions> = {},
): Promise<{ readonly violations: readonly string[]; readonly world: World }> => {
  const violations: string[] = [];
  const attempt = () => ({ runMs: 20_000, end: aSuccess() });
  const observe = (_: unknown, now: number) => sourceAt(now, false);
  const world = createWorld({ seed, chaos: storm, stormMs, attempt, observe, ...over });
  world.kube.seed(storageClasses, aStorageClass('local'));
  world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
  const report = (text: string) => void violations.push(`at ${Math.round(world.elapsed() / 1000)} s: ${text}`);
  world.kube.onChange(watch(world, report));
  play(world, scenario, seed);
  await world.run(limitMs);
  violations.push(...world.bugs.map((bug) => `a bug was thrown: ${String(bug)}`));
  violations.push(...endIn(world, scenario), ...leftIn(world));
  return { world, violations };
};

export const runCalmPolicy = async (scenario: PolicyScenario, seed: number): Promise<readonly string[]> =>
  (await runPolicy(scenario, seed, { chaos: calm })).violations;
