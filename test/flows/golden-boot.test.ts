// Versions that must start, on a cluster without KubeVirt: the real QEMU boots a clone of each, and the console of one that panics is in the status.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildBootSector } from '#infra/local/demo/boot-disk.ts';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { runBullion } from '#test/support/bullion.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { untilOffered, versionOf } from '#test/support/golden.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { hasRegistry } from '#test/support/registry/server.ts';
import { hasTools } from '#test/support/tools.ts';

const namespace = 'golden-images';
const { type } = goldenImagePolicyKind;
const panic = 'Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)';
const isSkipped = !hasRegistry() || !hasTools('qemu-system-x86_64');

describe.skipIf(isSkipped)('a version that must start', { timeout: 90_000 }, () => {
  let golden: GoldenRegistry;
  beforeAll(async () => void (golden = await startGoldenRegistry(namespace)), 120_000);
  afterAll(() => golden?.close());

  /** What is left of checks. */
  const left = async (): Promise<readonly string[]> => {
    const options = { namespace, labelSelector: 'bullion.dev/role=check' };
    const { kube } = golden.cluster;
    const found = await Promise.all([kube.list(jobs, options), kube.list(dataVolumes, options)]);
    return found.flatMap(({ items }) => items.map(({ metadata }) => metadata.name));
  };

  /** An image whose versions are booted, and its first one. */
  const imageThatStarts = async (volumeMode: string, image: string) => {
    const { kube } = golden.cluster;
    const publish = async (words: string): Promise<string> => {
      const disk = Buffer.concat([buildBootSector(`\r\n${words}`, 1), Buffer.alloc(2 ** 20)]);
      return versionOf(image, (await pushDisk(golden.target, disk, image)).digest);
    };
    const until = (isSo: (policy: GoldenImagePolicy) => boolean) =>
      golden.flow.until(type, image, (policy) => policy !== undefined && isSo(policy));
    const one = await publish(`${image} 42 host login: `);
    await golden.aCron(image, golden.fed({ registry: { url: golden.urlOf(image) } }, { volumeMode }));
    await kube.create(type, {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { namespace, name: image },
      spec: {
        dataImportCrons: { names: [image] },
        channels: [{ name: 'stable', dataSource: image }],
        verify: { boot: { until: 'ConsoleText', text: 'login:', timeout: '2m', memory: '64Mi' } },
      },
    });
    await untilOffered(golden.flow, image, one);
    expect(bootOf(await until(({ status }) => status?.phase === 'Ready'), one)).toMatchObject({
      state: 'Passed',
      message: expect.stringMatching(/^its serial console shows "login:" after \d+s \((KVM|emulation)\)$/),
      output: expect.stringContaining(`${image} 42 host login:`),
    });
    return { one, publish, until };
  };
  const bootOf = ({ status }: GoldenImagePolicy, version: string) =>
    status?.versions?.find(({ name }) => name === version)?.checks?.find(({ name }) => name === 'boot');

  it('is booted from a clone with mode Block', async () => {
    await imageThatStarts('Block', 'debian');
    await expect.poll(left, { timeout: 30_000 }).toEqual([]);
  });

  it('is booted from a clone with mode Filesystem, and stays out when it panics', async () => {
    const image = 'fedora';
    const { kubeconfigPath } = golden.cluster;
    const { one, publish, until } = await imageThatStarts('Filesystem', image);
    const two = await publish(`${image} ${panic}`);
    await golden.flow.pollNow(image);
    const refused = await until((policy) => bootOf(policy, two)?.state === 'Failed');
    expect(bootOf(refused, two)).toMatchObject({
      reason: 'BootFailed',
      message: expect.stringContaining(panic),
      output: expect.stringContaining(panic),
    });
    expect(refused.status?.channels).toMatchObject([{ version: one, reason: 'VerificationFailed' }]);
    expect((await golden.flow.get(dataSourceKind.type, image))?.spec.source.pvc?.name).toBe(one);
    const why = await runBullion(['why', `gip/${image}`, '--kubeconfig', kubeconfigPath, '-n', namespace]);
    expect(why.out.replaceAll(/\s+/g, ' ')).toContain(panic);
    await expect.poll(left, { timeout: 30_000 }).toEqual([]);
  });
});
