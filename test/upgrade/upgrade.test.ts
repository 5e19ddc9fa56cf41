// An upgrade from each earlier release: the objects that it left are driven on by the present code. What was finished is not written again.
import { mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Cluster, startCluster } from '#infra/local/cluster.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { jobs, persistentVolumeClaims, persistentVolumes, storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { labels } from '#shared/api/names.ts';
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import { type Origin, startOrigin } from '#test/support/origin.ts';
import { until } from '#test/support/until.ts';
import { restore } from '#test/upgrade/record.ts';
import { type Left, type Loose, answerTo, disk, everything, namespace } from '#test/upgrade/scene.ts';

/** What a user has, or a claim stands on. */
const keptTypes = [
  ...servedKinds.map(({ type }) => type),
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
  volumeSnapshots,
  backingImages,
];

const idOf = ({ apiVersion, kind, metadata: { name } }: KubeObject): string => `${apiVersion}/${kind}/${name}`;

/** A folder for each release that was recorded. */
const records = (await readdir(import.meta.dirname, { withFileTypes: true })).filter((entry) => entry.isDirectory());

describe.each(records.map(({ name }) => name))('objects that %s left', { timeout: 300_000 }, (version) => {
  let dataDir: string;
  let origin: Origin;
  let cluster: Cluster;
  let before: ReadonlyMap<string, KubeObject>;
  const folder = join(import.meta.dirname, version);
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'bullion-upgrade-'));
    origin = await startOrigin(answerTo('after'));
    const kept = await restore(folder, { dataDir, origin: origin.url });
    before = new Map(kept.map((object) => [idOf(object), object]));
    cluster = await startCluster({
      dataDir,
      apiServer: 'embedded',
      environment: process.env,
      tickSeconds: 1,
      backOffFactor: 0.01,
    });
  }, 240_000);
  afterAll(async () => {
    await cluster?.stop();
    await origin?.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  const recorded = ({ type, name }: Left): KubeObject | undefined =>
    before.get(idOf({ apiVersion: apiVersionOf(type), kind: type.kind, metadata: { name } }));
  const wasOver = (left: Left): boolean => left.isOver(recorded(left) as Loose);
  /** A later version may record more. */
  const known = (): readonly Left[] => everything.filter((left) => recorded(left) !== undefined);

  it('all come to their end, with the right bytes', async () => {
    expect(known().filter((left) => !wasOver(left)).length).toBeGreaterThan(0);
    const over = await Promise.all(
      known().map(async (left) => {
        const isSo = (now: Loose | undefined) => now !== undefined && left.isOver(now);
        return { left, object: (await until(cluster.kube, left.type, { namespace, name: left.name }, isSo, 200))! };
      }),
    );
    for (const { left, object } of over) {
      const claim = left.claim?.(object);
      if (claim === undefined) continue;
      const bytes = await readFile(await diskOf(cluster, { namespace, name: claim }));
      expect([left.name, bytes.subarray(0, disk.length).equals(disk)]).toEqual([left.name, true]);
    }
  });

  it('are not lost, nor made again', async () => {
    for (const [id, { metadata, apiVersion, kind }] of before) {
      const type = keptTypes.find((one) => apiVersionOf(one) === apiVersion && one.kind === kind);
      if (type === undefined || metadata.name.startsWith('prime-')) continue;
      const now = await cluster.kube.get(type, metadata);
      expect([id, now?.metadata.uid]).toEqual([id, metadata.uid]);
    }
    const versions = await Array.fromAsync(cluster.kube.listAll(dataVolumeKind.type, { namespace }));
    const made = versions.filter((object) => !before.has(idOf(object)));
    // The only ones that may not have been made before: the rest would be versions and copies of what is there.
    expect(made.filter(({ metadata }) => metadata.name !== 'harvester-cdi-moving')).toEqual([]);
  });

  it('are not written again if they were finished', async () => {
    const finished = known().filter(wasOver);
    expect(finished.length).toBeGreaterThan(0);
    const owners = new Set(finished.map((left) => recorded(left)?.metadata.uid));
    const work = await Array.fromAsync(cluster.kube.listAll(jobs, { namespace }));
    const again = work.filter((job) => owners.has(job.metadata.labels?.[labels.ownerUid]) && !before.has(idOf(job)));
    expect(again.map(({ metadata }) => metadata.name)).toEqual([]);
    for (const left of finished) {
      const claim = left.claim?.((await cluster.kube.get(left.type, { namespace, name: left.name }))!);
      if (claim === undefined) continue;
      // The archive of a record sets this time for all files.
      const { mtimeMs } = await stat(await diskOf(cluster, { namespace, name: claim }));
      expect([left.name, mtimeMs]).toEqual([left.name, 0]);
    }
  });
});
