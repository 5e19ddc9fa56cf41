// Two clusters that run at the same time and share a target, under the same faults: each keeps its own images, restores those of the other, and
// has users who delete restored images. Neither may delete what belongs to the other, and a third cluster finds all images that their first cluster
// did not delete.
import { type BackupImageObject, imageTypes } from '#shared/backup/image.ts';
import { parseMetadata } from '#shared/backup/metadata.ts';
import { classify } from '#shared/backup/place.ts';
import { tickBackups } from '#shared/backup/tick.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { BackupRun } from '#test/faults/backup.ts';
import { logFailure, shakyKube, shakyStore } from '#test/faults/shaky.ts';
import { type MemoryCluster, backedUp, createMemoryCluster } from '#test/support/backup-world.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { type MemoryStore, createMemoryStore } from '#test/support/memory-store.ts';
import { type Random, createRandom } from '#test/support/random.ts';

const hyperCloud = imageTypes[1] as ResourceType<BackupImageObject>;
const steps = 40;
/** Images of each cluster; under a name that both use they have different bytes. */
const owned = { one: ['a', 'b', 'common'], two: ['x', 'y', 'common'] } as const;
type Side = keyof typeof owned;

const diskOf = (side: Side, name: string): string =>
  (side === 'one' ? '1' : '2') + Buffer.from(name.padEnd(8, '_')).toString('hex').padEnd(63, '0').slice(0, 63);

const find = ({ kube }: MemoryCluster, name: string): BackupImageObject | undefined =>
  kube.all<BackupImageObject>(hyperCloud).find(({ metadata }) => metadata.name === name);

const make = (side: Side, cluster: MemoryCluster): void => {
  for (const name of owned[side]) {
    cluster.ready(backedUp(aHyperCloudImage({ metadata: { namespace: 'default', name } })), diskOf(side, name));
  }
};

/** Restored volumes are populated, and pending backups are written. */
const work = (side: Side, cluster: MemoryCluster): void => {
  for (const image of cluster.kube.all<BackupImageObject>(hyperCloud)) {
    const { name, uid, annotations = {} } = image.metadata;
    const isRestored = Object.keys(annotations).some((key) => key.endsWith('/restore'));
    if (isRestored && image.status === undefined) cluster.ready(image, 'f'.repeat(64));
    const job = cluster.kube.all(jobs).find(({ metadata }) => metadata.name === `backup-${uid}`);
    if (job !== undefined && job.status?.conditions === undefined) cluster.finishJob(image, diskOf(side, name));
  }
};

/** Names in the target, by the cluster that owns them. */
const keptBy = ({ objects }: MemoryStore): ReadonlyMap<string, readonly string[]> => {
  const all = [...objects].flatMap(([key, bytes]) => {
    const parsed = classify(key).is === 'metadata' ? parseMetadata(bytes) : undefined;
    return parsed !== undefined && 'value' in parsed ? [parsed.value.image] : [];
  });
  const byCluster = Map.groupBy(all, ({ cluster }) => cluster);
  return new Map([...byCluster].map(([cluster, images]) => [cluster, images.map(({ name }) => name).toSorted()]));
};

interface Playing {
  readonly random: Random;
  readonly store: MemoryStore;
  readonly sides: Readonly<Record<Side, MemoryCluster>>;
  readonly shaky: Readonly<Record<Side, MemoryCluster['deps']>>;
  /** What its own cluster has observed as backed up: it must be kept. */
  readonly vouched: Set<string>;
  readonly violations: string[];
}

const other = (side: Side): Side => (side === 'one' ? 'two' : 'one');

/** A user deletes a restored image, never an image of the cluster's own. */
const deleteRestored = async ({ random, sides }: Playing): Promise<void> => {
  const side = random.pick<Side>(['one', 'two']);
  const name = random.pick<string>([...owned[other(side)]]);
  const image = find(sides[side], name);
  const isRestored = Object.keys(image?.metadata.annotations ?? {}).some((key) => key.endsWith('/restore'));
  if (isRestored) await sides[side].kube.delete(hyperCloud, { namespace: 'default', name });
};

const uidsIn = ({ objects }: MemoryStore): ReadonlySet<string> =>
  new Set(
    [...objects].flatMap(([key, bytes]) => {
      const parsed = classify(key).is === 'metadata' ? parseMetadata(bytes) : undefined;
      return parsed !== undefined && 'value' in parsed ? [parsed.value.image.uid] : [];
    }),
  );

const checkOwn = ({ sides, vouched, violations }: Playing, side: Side, uids: ReadonlySet<string>): void => {
  for (const name of owned[side]) {
    const image = find(sides[side], name);
    const { uid = '' } = image?.metadata ?? {};
    const ready = image?.status?.conditions?.find(({ type }) => type === 'MetadataReady');
    if (image === undefined) violations.push(`${side} lost its image ${name}`);
    if (ready?.status === 'True' && uids.has(uid)) vouched.add(uid);
  }
};

const check = (playing: Playing): void => {
  const { store, vouched, violations } = playing;
  const uids = uidsIn(store);
  for (const uid of vouched) if (!uids.has(uid)) violations.push(`${uid} is gone from the target`);
  for (const side of ['one', 'two'] as const) checkOwn(playing, side, uids);
};

export const runSharedStorm = async (seed: number, strength = 0.12): Promise<BackupRun> => {
  const random = createRandom(seed);
  const store = createMemoryStore();
  let odds = strength;
  const unsteady = shakyStore(store, random, () => odds);
  const steady = new Map<string, Store>([['backups', store]]);
  const sides = {
    one: createMemoryCluster(steady, {}, 'aaaaaaaa'),
    two: createMemoryCluster(steady, {}, 'bbbbbbbb'),
  };
  const shakyOf = ({ deps, kube }: MemoryCluster): MemoryCluster['deps'] => ({
    ...deps,
    open: (target) => ({ ...deps.open(target), store: unsteady }),
    kube: shakyKube(kube, random, () => odds / 3),
  });
  const shaky = { one: shakyOf(sides.one), two: shakyOf(sides.two) };
  const playing: Playing = { random, store, sides, shaky, vouched: new Set(), violations: [] };
  const all = ['one', 'two'] as const;
  for (const side of all) {
    sides[side].setTarget({
      type: 's3',
      endpoint: 'https://store.example',
      bucketName: 'backups',
      refreshIntervalInSeconds: '60',
    });
    make(side, sides[side]);
  }
  for (let step = 0; step < steps + 70; step += 1) {
    if (step === steps) odds = 0;
    if (step > 5 && step < steps && random.chance(0.2)) await deleteRestored(playing);
    for (const side of random.chance(0.5) ? all : all.toReversed()) {
      sides[side].time.clock += 60_000;
      await logFailure(() => tickBackups(shaky[side], new AbortController().signal));
      work(side, sides[side]);
      check(playing);
    }
  }
  const three = createMemoryCluster(steady, {}, 'cccccccc');
  three.setTarget();
  await three.tick(3);
  const kept = [...keptBy(store).values()].flat().toSorted();
  const restored = three.kube
    .all<BackupImageObject>(hyperCloud)
    .map(({ metadata }) => metadata.name)
    .toSorted();
  return { violations: playing.violations, summary: { kept, restored } };
};

/** Every image of both, whatever was deleted of the images that the other one restored. */
export const expectedOfShared = {
  kept: ['a', 'b', 'common', 'common', 'x', 'y'],
  restored: ['a', 'b', 'common', 'x', 'y'],
};
