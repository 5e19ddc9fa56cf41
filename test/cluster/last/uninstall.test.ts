// Uninstalled in the middle of an import, and installed again. Run after all other flows, which need what it removes.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { jobs, namespaces, persistentVolumeClaims, persistentVolumes, pods } from '#shared/api/foreign/core.ts';
import { crds } from '#shared/api/foreign/kubernetes.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { untilStatus } from '#test/support/until.ts';
import { setUp } from '#test/cluster/set-up.ts';
import { anImage, diskIn, kube, kubectl, paths, run, shape, timed, untilImage } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const namespace = 'uninstalled';
const at = (name: string) => ({ namespace, name });
const images = hyperCloudImageKind.type;

const { dir, offer } = setUp({ [namespace]: {} });
const raw = join(dir, 'disk.raw');
beforeAll(() => writeBootDisk(raw, { bytes: 16 * mib, dataBytes: 8 * mib }));

const left = async (): Promise<readonly string[]> => {
  const kinds = [jobs, pods, persistentVolumeClaims, volumeSnapshots] as readonly unknown[] as readonly ResourceType[];
  const names: string[] = [];
  for (const type of kinds)
    for (const { metadata } of (await kube.list(type, { namespace })).items)
      names.push(`${type.kind}/${metadata.name}`);
  const { items } = await kube.list(persistentVolumes);
  const ofOurs = items.filter(({ spec }) => spec.claimRef?.namespace === namespace);
  return [...names, ...ofOurs.map(({ metadata }) => `PersistentVolume/${metadata.name}`)];
};

// The functions of other shapes are started by the program that runs this, or need Knative.
describe.skipIf(shape !== 'single')('bullion uninstall', { timeout: 600_000 }, () => {
  it('removes every object, volume and kind, also while a disk is imported', async () => {
    const volumes = join(paths.volumes, 'volumes');
    const before = (await readdir(volumes)).length;
    await kube.create(images, anImage(at('ready'), await offer('disk.raw', raw)));
    expect(await untilImage(at('ready'))).toMatchObject({ state: 'Available' });
    await kube.create(images, anImage(at('running'), await offer('slow.raw', raw, mib / 8)));
    await untilStatus(
      kube,
      images,
      at('running'),
      ({ phase, progress = 0 }) => phase === 'Downloading' && progress > 0,
    );
    const uninstall = ['cli/main.ts', 'uninstall', '--yes', '--timeout', '300s', '--kubeconfig', paths.kubeconfig];
    const { stderr } = await timed('bullion uninstall', () => run(process.execPath, uninstall));
    expect(stderr).toContain('Bullion is uninstalled.');
    const { items } = await kube.list(crds, { labelSelector: 'app.kubernetes.io/part-of=bullion' });
    expect(items.map(({ metadata }) => metadata.name)).toEqual([]);
    expect(await kube.get(namespaces, { name: 'bullion-system' })).toBeUndefined();
    await expect.poll(left, { timeout: 120_000 }).toEqual([]);
    await expect.poll(async () => (await readdir(volumes)).length, { timeout: 120_000 }).toBeLessThanOrEqual(before);
  });

  it('leaves a cluster in which it can be installed again', async () => {
    await kubectl('apply', '--server-side', '-k', 'infra/overlays/single');
    await kubectl('rollout', 'status', '-n', 'bullion-system', 'deployment/bullion', '--timeout=240s');
    await kube.create(images, anImage(at('again'), await offer('disk.raw', raw)));
    expect(await untilImage(at('again'), 180)).toMatchObject({ state: 'Available' });
    expect(await diskIn(at('again-image-pvc'), raw)).toBe('identical');
  });
});
