// Many images at once on one node. Its figures are printed.
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { jobs, pods } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { untilStatus } from '#test/support/until.ts';
import { figuresOf } from '#test/cluster/figures.ts';
import { setUp } from '#test/cluster/set-up.ts';
import { anImage, diskIn, kube, timed } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const namespace = 'burst';
const count = 100;
const images = hyperCloudImageKind.type;
const names = Array.from({ length: count }, (_, index) => `image-${index}`);

const { dir, offer } = setUp({ [namespace]: {} });
const raw = join(dir, 'disk.raw');

it(`${count} images of 10 MiB become Available, each with its own bytes`, { timeout: 1_800_000 }, async () => {
  await writeBootDisk(raw, { bytes: 16 * mib, dataBytes: 10 * mib });
  const started = new Set<string>();
  const attempts = new Map<string, number>();
  const observe = async (): Promise<void> => {
    for (const { metadata } of (await kube.list(pods, { namespace })).items) started.add(metadata.uid ?? '');
    for (const { metadata, status } of (await kube.list(jobs, { namespace })).items)
      attempts.set(metadata.uid ?? '', status?.failed ?? 0);
  };
  const becomeReady = async (): Promise<void> => {
    // Another address for each: equal ones are fetched once.
    await Promise.all(
      names.map(async (name) => kube.create(images, anImage({ namespace, name }, await offer(`${name}.raw`, raw)))),
    );
    for (const name of names)
      await untilStatus(kube, images, { namespace, name }, ({ state }) => state !== 'Creating', 1_500);
  };
  const figures = await figuresOf(() => timed(`${count} images of 10 MiB`, becomeReady), observe);
  console.log(`load of the machine: ${loadavg().map(Math.round).join(', ')}; ${JSON.stringify(figures)}`);
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
