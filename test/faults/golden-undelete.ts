// Versions that a user deletes by hand under faults: one is wanted back, one is not, one more goes with its policy's grace, while events are lost, clocks
// jump and functions are killed. Called by golden-policy.test.ts and by main.ts.
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { type PersistentVolume, persistentVolumes, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { aCron, insist, isFull, sourceAt, stormMs } from '#test/faults/golden-cron.ts';
import { aSnapshotClass, aStorageClass, aSuccess } from '#test/support/builders.ts';
import { createRandom } from '#test/support/random.ts';
import { calm, storm } from '#test/support/simulation/chaos.ts';
import { type World, type WorldOptions, createWorld } from '#test/support/simulation/world.ts';

const { type } = goldenImagePolicyKind;
const namespace = 'default';
const key = { namespace, name: 'policy' };
const cronKey = { namespace, name: 'cron' };
const [wanted, given, newest] = ['a', 'b', 'c'].map((char) => `golden-${char.repeat(12)}`) as [string, string, string];
const hour = 3_600_000;
const graceMs = 2 * hour;
/** Nothing is deleted for the sake of the clock before: the storm makes it jump. */
const endMs = 5 * hour;

const aPolicy: GoldenImagePolicy = {
  apiVersion: 'bullion.dev/v1alpha1',
  kind: 'GoldenImagePolicy',
  metadata: key,
  spec: {
    dataImportCrons: { names: ['cron'] },
    channels: [{ name: 'stable', dataSource: 'golden' }],
    retention: { keep: 9, undeleteFor: '2h' },
  },
};

const storageOf = (world: World, name: string): PersistentVolume | undefined =>
  world.kube.all(persistentVolumes).find(({ spec }) => spec.claimRef?.name === name);

interface Deleted {
  readonly storage: string;
  readonly at: number;
}

/** By hand, once it is kept so that it can be brought back, and is not the newest, which is imported again anyway. */
const deleteOf = (world: World, name: string, deleted: Map<string, Deleted>) => async (): Promise<unknown> => {
  const storage = storageOf(world, name);
  const isKept = storage?.metadata.annotations?.[annotations.kept] !== undefined;
  const isThere = world.kube.all(dataVolumes).some(({ metadata }) => metadata.name === name);
  const { lastImportedPVC: offered } = world.kube.all(dataImportCronKind.type)[0]?.status ?? {};
  if (!isKept || !isThere || deleted.has(name) || offered?.name !== newest) return undefined;
  await world.kube.delete(dataVolumes, { namespace, name });
  return deleted.set(name, { storage: storage.metadata.name, at: world.elapsed() });
};

const play = (world: World, seed: number, deleted: Map<string, Deleted>): void => {
  const random = createRandom(seed + 13);
  const at = (ms: number, what: () => Promise<unknown>) => world.schedule(ms, () => void insist(world, what));
  at(0, () => world.kube.create(dataImportCronKind.type, aCron({ importsToKeep: 1 }) as KubeObject));
  at(0, () => world.kube.create(type, aPolicy));
  const annotate = (marks: object) =>
    world.kube.mergePatch(dataImportCronKind.type, cronKey, { metadata: { annotations: marks } });
  const pollNow = () => annotate({ [cdiAnnotations.nextCronTime]: '2020-01-01T00:00:00Z' });
  for (const poll of [20_000, 60_000, 160_000, 200_000, 250_000, 320_000, 380_000, stormMs + 60_000]) at(poll, pollNow);
  const begin = 330_000 + random.below(100_000);
  for (const name of [wanted, given])
    for (let time = begin; time < stormMs + 600_000; time += 20_000) at(time, deleteOf(world, name, deleted));
  at(begin + 40_000 + random.below(stormMs), () => annotate({ [annotations.undelete]: wanted }));
  // What came too early is asked for once more.
  at(stormMs + 900_000, async () => deleted.has(wanted) && annotate({ [annotations.undelete]: wanted }));
  at(endMs - 600_000, () => world.kube.mergePatch(type, key, { spec: { retention: { undeleteFor: null } } }));
  at(endMs, async () => undefined);
};

/** What must never happen: bytes are gone while they can be brought back. */
const watch = (world: World, deleted: Map<string, Deleted>, report: (text: string) => void): void =>
  world.kube.onChange(({ type: change, object }) => {
    if (change !== 'DELETED' || object.kind !== 'PersistentVolume') return;
    for (const [name, { storage, at }] of deleted)
      if (storage === object.metadata.name && world.elapsed() - at < graceMs)
        report(`the bytes of ${name} are gone within their grace`);
  });

/** What is not as it was before the policy. */
const markedIn = (world: World): readonly string[] =>
  world.kube
    .all(persistentVolumes)
    .filter(
      ({ metadata, spec }) =>
        metadata.labels?.[labels.ownerUid] !== undefined || spec.persistentVolumeReclaimPolicy !== 'Delete',
    )
    .map(({ metadata }) => `the storage ${metadata.name} is not as it was`);

const recordedIn = (world: World): readonly string[] =>
  world.kube
    .all(dataImportCronKind.type)
    .flatMap(({ metadata, status }) => [
      ...(metadata.annotations?.[annotations.undelete] === undefined ? [] : ['a request is open']),
      ...(status?.deleted === undefined && status?.retention?.keeps === undefined ? [] : ['something is recorded']),
    ]);

const endIn = (world: World, deleted: Map<string, Deleted>): readonly string[] => {
  const back = deleted.get(wanted);
  const isBack = isFull(world, wanted) && storageOf(world, wanted)?.metadata.name === back?.storage;
  return [
    ...(back === undefined || isBack ? [] : [`${wanted} did not come back on its storage`]),
    ...(deleted.has(given) && storageOf(world, given) !== undefined ? [`${given} is there`] : []),
    ...markedIn(world),
    ...recordedIn(world),
  ];
};

export const runUndelete = async (
  seed: number,
  over: Partial<WorldOptions> = {},
): Promise<{ readonly violations: readonly string[]; readonly world: World; readonly deleted: readonly string[] }> => {
  const violations: string[] = [];
  const deleted = new Map<string, Deleted>();
  const attempt = () => ({ runMs: 20_000, end: aSuccess() });
  const observe = (_: unknown, now: number) => sourceAt(now, false);
  const world = createWorld({ seed, chaos: storm, stormMs, attempt, observe, hasVolumes: true, ...over });
  world.kube.seed(storageClasses, aStorageClass('local'));
  world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
  watch(world, deleted, (text) => void violations.push(`at ${Math.round(world.elapsed() / 1000)} s: ${text}`));
  play(world, seed, deleted);
  await world.run(endMs + hour);
  violations.push(...world.cluster.overwrites, ...world.bugs.map((bug) => `a bug was thrown: ${String(bug)}`));
  violations.push(...endIn(world, deleted));
  return { world, violations, deleted: [...deleted.keys()] };
};

export const runCalmUndelete = (seed: number): ReturnType<typeof runUndelete> => runUndelete(seed, { chaos: calm });
