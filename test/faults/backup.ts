// Backups under faults: a store that rejects requests, interrupts them, returns empty listings and loses responses, an API that does so too, functions
// that are killed, a target that is emptied and changed, users who create, edit and delete, sweeps. Checks what must never happen, and the final state.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { finalizers } from '#shared/api/names.ts';
import { type BackupImageObject, imageTypes } from '#shared/backup/image.ts';
import { parseMetadata } from '#shared/backup/metadata.ts';
import { ownBackups } from '#shared/backup/sweep/look.ts';
import { sweepTarget } from '#shared/backup/sweep/sweep.ts';
import { classify, dataPrefix } from '#shared/backup/place.ts';
import { syncImage } from '#shared/backup/sync.ts';
import { tickBackups } from '#shared/backup/tick.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { indexKey } from '#shared/transfer/chunks/chunk-index.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { logFailure, shakyKube, shakyStore } from '#test/faults/shaky.ts';
import { type MemoryCluster, backedUp, createMemoryCluster } from '#test/support/backup-world.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { type MemoryStore, createMemoryStore } from '#test/support/memory-store.ts';
import { type Random, createRandom } from '#test/support/random.ts';

export interface BackupRun {
  /** Violations: what must never happen and did. */
  readonly violations: readonly string[];
  /** The final state. */
  readonly summary: object;
}

const hyperCloud = imageTypes[1] as ResourceType<BackupImageObject>;
const steps = 40;
const names = ['a', 'b', 'c'];
const diskOf = (name: string): string => name.repeat(64);

interface Playing {
  readonly random: Random;
  readonly store: MemoryStore;
  readonly one: MemoryCluster;
  readonly shakyDeps: MemoryCluster['deps'];
  readonly deleted: Set<string>;
  readonly violations: string[];
  /** Whether one of three images is deleted at some time. */
  readonly deletes: boolean;
}

const refOf = (name: string) => ({
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineImage',
  namespace: 'default',
  name,
});

const imageOf = ({ one }: Pick<Playing, 'one'>, name: string): BackupImageObject | undefined =>
  one.kube.all<BackupImageObject>(hyperCloud).find(({ metadata }) => metadata.name === name);

const make = ({ one }: Pick<Playing, 'one'>, name: string): void => {
  one.ready(backedUp(aHyperCloudImage({ metadata: { namespace: 'default', name } })), diskOf(name));
};

const finishJobs = ({ one, random }: Playing, isCalm = false): void => {
  for (const name of names) {
    const image = imageOf({ one }, name);
    const job = image && one.kube.all(jobs).find(({ metadata }) => metadata.name === `backup-${image.metadata.uid}`);
    if (image === undefined || job === undefined || job.status?.conditions !== undefined) continue;
    if (isCalm || random.chance(0.6)) one.finishJob(image, diskOf(name));
    else one.failJob(image, 'the store was down');
  }
};

const targets = [
  { type: 's3', endpoint: 'https://store.example', bucketName: 'backups' },
  { type: 's3', endpoint: 'https://store.example', bucketName: 'others' },
  {},
  { type: 's3', endpoint: 'nonsense', bucketName: 'backups' },
] as const;

/** The actions of users meanwhile. */
const meddle = async (playing: Playing): Promise<void> => {
  const { random, one, shakyDeps, deleted } = playing;
  if (random.chance(0.2)) {
    const fields = random.chance(0.5) ? targets[0] : random.pick(targets);
    one.setTarget(fields as Record<string, string>);
  }
  const edited = imageOf(playing, random.pick(names));
  if (edited !== undefined && random.chance(0.2))
    one.kube.edit(hyperCloud, edited.metadata as never, (object) => {
      object.metadata.labels = { edit: String(random.below(1000)) };
    });
  // One of three is deleted, and only that one.
  if (playing.deletes && deleted.size === 0 && random.chance(0.05)) {
    deleted.add('c');
    await one.kube.delete(hyperCloud, { namespace: 'default', name: 'c' });
  }
  if (deleted.has('c')) await logFailure(() => syncImage(shakyDeps, refOf('c')));
};

/** A sweep of unreferenced data in the same store; what a Job has just written counts as old here. */
const sweepSometimes = async ({ random, one }: Playing, store: Store): Promise<void> => {
  if (!random.chance(0.15)) return;
  const own = () => ownBackups(one.kube, 'https://store.example/backups');
  const now = () => one.time.clock;
  const wait = () => Promise.resolve();
  const signal = new AbortController().signal;
  await logFailure(() => sweepTarget({ store, own, by: 'somebody', now, wait, signal, say: () => {} }));
};

const check = ({ store, deleted, violations }: Playing): void => {
  for (const [key, bytes] of store.objects) {
    if (classify(key).is !== 'metadata') continue;
    const parsed = parseMetadata(bytes);
    if ('problem' in parsed) violations.push(`${key} is torn: ${parsed.problem}`);
    else if (parsed.value.data.kept === 'chunks' && !store.objects.has(indexKey(dataPrefix, parsed.value.data.disk)))
      violations.push(`${key} names a disk that is not there`);
  }
  const removed = store.calls.splice(0).flatMap((call) => (call.startsWith('remove ') ? [call.slice(7)] : []));
  for (const key of removed) if (!mayBeRemoved(key, deleted)) violations.push(`removed ${key}`);
};

/** After a sweep, checks for references to missing data. */
const mayBeRemoved = (key: string, deleted: ReadonlySet<string>): boolean =>
  key.startsWith(dataPrefix) || classify(key).is === 'mark' || (deleted.has('c') && key.includes('default-c'));

const summaryOf = (cluster: MemoryCluster): object =>
  Object.fromEntries(
    names.map((name) => {
      const image = cluster.kube.all<BackupImageObject>(hyperCloud).find(({ metadata }) => metadata.name === name);
      const kept = image?.status?.conditions?.find(({ type }) => type === 'MetadataReady')?.status;
      return [name, image === undefined ? 'absent' : kept];
    }),
  );

const isHeldForNothing = (object: KubeObject): boolean =>
  object.metadata.deletionTimestamp !== undefined && (object.metadata.finalizers?.includes(finalizers.backup) ?? false);

/** Faults for `steps` ticks, then normal operation until nothing is left to do; then a second cluster restores the target. */
export const runBackupStorm = async (seed: number, strength = 0.15): Promise<BackupRun> => {
  const random = createRandom(seed);
  const store = createMemoryStore();
  let odds = strength;
  const unsteady = shakyStore(store, random, () => odds);
  const other = createMemoryStore();
  const steady = new Map<string, Store>([
    ['backups', store],
    ['others', other],
  ]);
  const one = createMemoryCluster(steady, {}, 'aaaaaaaa');
  const open: MemoryCluster['deps']['open'] = (target) => {
    const opened = one.deps.open(target);
    return { ...opened, store: opened.store === store ? unsteady : opened.store };
  };
  const shakyDeps = { ...one.deps, open, kube: shakyKube(one.kube, random, () => odds / 3) };
  const deletes = seed % 3 !== 0;
  const playing: Playing = {
    random,
    store,
    one,
    shakyDeps,
    deleted: new Set(),
    violations: [],
    deletes,
  };
  one.setTarget(targets[0]);
  for (const name of names) make(playing, name);
  for (let step = 0; step < steps; step += 1) {
    one.time.clock += 60_000;
    await meddle(playing);
    await logFailure(() => tickBackups(shakyDeps, new AbortController().signal));
    finishJobs(playing);
    await sweepSometimes(playing, unsteady);
    check(playing);
  }
  odds = 0;
  one.setTarget(targets[0]);
  // An interrupted sweep expires after some hours.
  one.time.clock += 6 * 3_600_000;
  for (let step = 0; step < 30; step += 1) {
    await one.tick();
    finishJobs(playing, true);
    check(playing);
  }
  const { violations } = playing;
  for (const object of one.kube.all()) if (isHeldForNothing(object)) violations.push(`${object.metadata.name} is held`);
  const two = createMemoryCluster(steady, {}, 'bbbbbbbb');
  two.setTarget(targets[0]);
  await two.tick(3);
  const isDeleted = playing.deleted.has('c');
  const restored = names.filter((name) => imageOf({ one: two }, name) !== undefined);
  return { violations, summary: { isDeleted, one: summaryOf(one), restored } };
};

/** The required final state. */
export const expectedSummary = (isDeleted: boolean): object => ({
  isDeleted,
  one: { a: 'True', b: 'True', c: isDeleted ? 'absent' : 'True' },
  restored: isDeleted ? ['a', 'b'] : ['a', 'b', 'c'],
});
