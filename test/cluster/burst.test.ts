// Many images at once on one node. Its figures are printed.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { network } from '#local-cluster/node/layout.ts';
import { jobs, pods } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { untilStatus } from '#test/support/until.ts';
import { anImage, createNamespace, deleteNamespaces, diskIn, kube, timed } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const namespace = 'burst';
const count = 100;
const images = hyperCloudImageKind.type;
const names = Array.from({ length: count }, (_, index) => `image-${index}`);

let dir: string;
let raw: string;
let files: FileServer;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bullion-cluster-burst-'));
  raw = join(dir, 'disk.raw');
  await writeBootDisk(raw, { bytes: 16 * mib, dataBytes: 10 * mib });
  files = await startFileServer({ host: network.node });
  await createNamespace(namespace);
});
afterAll(async () => {
  await deleteNamespaces(namespace);
  await files?.close();
  await rm(dir, { recursive: true, force: true });
}, 600_000);

it(`${count} images of 10 MiB become Available, each with its own bytes`, { timeout: 1_800_000 }, async () => {
  const started = new Set<string>();
  const attempts = new Map<string, number>();
  const observe = async (): Promise<void> => {
    for (const { metadata } of (await kube.list(pods, { namespace })).items) started.add(metadata.uid ?? '');
    for (const { metadata, status } of (await kube.list(jobs, { namespace })).items)
      attempts.set(metadata.uid ?? '', status?.failed ?? 0);
  };
  await timed(`${count} images of 10 MiB`, async () => {
    // Another address for each: equal ones are fetched once.
    await Promise.all(
      names.map((name) => kube.create(images, anImage({ namespace, name }, files.offer(`${name}.raw`, raw)))),
    );
    const watching = setInterval(() => void observe().catch(() => undefined), 2_000);
    try {
      for (const name of names)
        await untilStatus(kube, images, { namespace, name }, ({ state }) => state !== 'Creating', 1_500);
    } finally {
      clearInterval(watching);
    }
  });
  const failed = [...attempts.values()].reduce((sum, one) => sum + one, 0);
  console.log(`pods started: ${started.size}; attempts of Jobs that failed: ${failed}`);
  const states = await Promise.all(
    names.map(async (name) => (await kube.get(images, { namespace, name }))?.status?.state),
  );
  expect(Object.entries(Object.groupBy(states, String)).map(([state, all]) => [state, all?.length])).toEqual([
    ['Available', count],
  ]);
  for (const name of names) expect(await diskIn({ namespace, name: `${name}-image-pvc` }, raw)).toBe('identical');
});
