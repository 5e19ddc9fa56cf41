// A node whose disk is full, as the kubelet sees it: it evicts every pod in mid-import, Bullion's own included, and takes new ones once there is space again.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { env } from 'node:process';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { probeImage } from '#local-cluster/node/files.ts';
import { importProgram } from '#local-cluster/node/images.ts';
import { nodeName } from '#local-cluster/node/layout.ts';
import { ensurePrograms } from '#local-cluster/node/programs.ts';
import { pods } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { untilStatus } from '#test/support/until.ts';
import { ensureImages, loadImages } from '#test/cluster/images.ts';
import { setUp } from '#test/cluster/set-up.ts';
import { anImage, diskIn, killProgram, kube, kubectl, paths, shape, timed, untilImage } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const namespace = 'pressure';
const { type } = hyperCloudImageKind;
const configFile = join(paths.config, 'kubelet.yaml');

interface KubeletConfig {
  readonly evictionHard: Readonly<Record<string, string>>;
}

const { dir, offer } = setUp({ [namespace]: {} });
const raw = join(dir, 'disk.raw');
beforeAll(() => writeBootDisk(raw, { bytes: 64 * mib, dataBytes: 24 * mib }));

/** The kubelet reads its configuration when it starts. */
const restartKubelet = async (config: object): Promise<void> => {
  await writeFile(configFile, stringify(config));
  await killProgram('kubelet');
};

const untilPressure = (status: 'True' | 'False') =>
  kubectl('wait', `node/${nodeName}`, `--for=condition=DiskPressure=${status}`, '--timeout=600s');

/** The kubelet removes images that no pod uses before it evicts; here nothing can be pulled again. */
const restoreImages = async (): Promise<void> => {
  const report = (): void => undefined;
  const programs = await ensurePrograms(env, report);
  await importProgram(paths.socket, programs.of('probe'), probeImage);
  await loadImages(await ensureImages(report), paths.socket);
};

const transferPods = async (): Promise<readonly string[]> =>
  (await kube.list(pods, { namespace })).items
    .filter(({ status }) => status?.phase === 'Running')
    .map(({ metadata }) => metadata.name);

// Images of Knative would have to be restored, too.
describe.skipIf(shape === 'knative')('a node with disk pressure', { timeout: 1_800_000 }, () => {
  it('evicts an import, which is completed once there is space', async () => {
    const config = parse(await readFile(configFile, 'utf8')) as KubeletConfig;
    const key = { namespace, name: 'evicted' };
    await kube.create(type, anImage(key, await offer('disk.raw', raw, mib / 2)));
    await untilStatus(kube, type, key, ({ phase, progress = 0 }) => phase === 'Downloading' && progress > 0, 300);
    const [running] = await transferPods();
    await restartKubelet({ ...config, evictionHard: { ...config.evictionHard, 'nodefs.available': '99%' } });
    try {
      await untilPressure('True');
      await timed('the pod of an import is evicted', () =>
        expect.poll(transferPods, { timeout: 600_000, interval: 1_000 }).not.toContain(running),
      );
      console.log(await kubectl('get', 'pods', '-A', '--no-headers'));
    } finally {
      await restartKubelet(config);
    }
    await untilPressure('False');
    await restoreImages();
    const status = await timed('an image whose pod was evicted', () => untilImage(key, 900));
    console.log(JSON.stringify(status));
    // A kubelet that finds pressure when it starts rejects the pod, which is a failed attempt for Kubernetes; a later eviction is none.
    expect(status).toMatchObject({ state: 'Available' });
    expect(await diskIn({ namespace, name: 'evicted-image-pvc' }, raw)).toBe('identical');
    await kubectl('wait', '-n', 'bullion-system', 'deployment', '--all', '--for=condition=Available', '--timeout=600s');
  });
});
