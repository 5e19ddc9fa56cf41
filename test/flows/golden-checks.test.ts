// Versions that must pass checks of the user's and start, on a cluster that runs the Jobs for real and has machines by a stand-in for KubeVirt.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { configMaps, jobs } from '#shared/api/foreign/core.ts';
import { virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import { testSettings } from '#test/support/builders.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { untilOffered, versionOf } from '#test/support/golden.ts';
import { type Machines, startMachines } from '#test/support/machines.ts';
import { hasRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';
const { type } = goldenImagePolicyKind;

describe.skipIf(!hasRegistry())('a golden image that is checked', { timeout: 240_000 }, () => {
  let golden: GoldenRegistry;
  let machines: Machines;
  beforeAll(async () => {
    golden = await startGoldenRegistry(namespace);
    machines = await startMachines(golden.cluster.kube);
  }, 120_000);
  afterAll(async () => {
    await machines?.stop();
    await golden?.close();
  });

  const until = (isSo: (policy: GoldenImagePolicy) => boolean) =>
    golden.flow.until(type, 'fedora', (policy) => policy !== undefined && isSo(policy));
  const publish = async (seed: string): Promise<string> => {
    const { digest } = await golden.push('fedora', seed);
    await golden.flow.pollNow('fedora');
    return versionOf('fedora', digest);
  };
  const checkOf = ({ status }: GoldenImagePolicy, version: string, name: string) =>
    status?.versions?.find((one) => one.name === version)?.checks?.find((check) => check.name === name);

  it('lets versions in that pass their checks and start, and keeps the others out, with their words', async () => {
    const { kube } = golden.cluster;
    const rules = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name: 'rules' } };
    await kube.create(configMaps, { ...rules, data: { least: '65536' } });
    const first = await golden.push('fedora', 'v1');
    await golden.aCron('fedora');
    await kube.create(type, {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { namespace, name: 'fedora' },
      spec: {
        dataImportCrons: { names: ['fedora'] },
        channels: [{ name: 'stable', dataSource: 'fedora' }],
        verify: {
          boot: { timeout: '5m' },
          checks: [
            {
              name: 'size',
              image: testSettings.transferImage,
              command: [
                '/bin/sh',
                '-c',
                'set -e; size=$(wc -c < $BULLION_DISK); echo $size bytes; test $size -ge $LEAST',
              ],
              env: [{ name: 'LEAST', valueFrom: { configMapKeyRef: { name: 'rules', key: 'least' } } }],
            },
          ],
        },
      },
    });
    const one = versionOf('fedora', first.digest);
    await untilOffered(golden.flow, 'fedora', one);
    const passed = await until(({ status }) => status?.phase === 'Ready');
    expect(checkOf(passed, one, 'size')).toMatchObject({ state: 'Passed' });
    expect(checkOf(passed, one, 'boot')).toMatchObject({
      state: 'Passed',
      message: expect.stringMatching(/guest agent answered.*Fedora Linux/),
    });

    await kube.mergePatch(configMaps, { namespace, name: 'rules' }, { data: { least: '999999999' } });
    machines.fail('guest panicked');
    const two = await publish('v2');
    const isOver = (policy: GoldenImagePolicy): boolean =>
      ['size', 'boot'].every((name) => checkOf(policy, two, name)?.state === 'Failed');
    const refused = await until(isOver);
    expect(checkOf(refused, two, 'size')).toMatchObject({
      reason: 'CheckFailed',
      output: expect.stringMatching(/^\d+ bytes$/),
    });
    expect(checkOf(refused, two, 'boot')).toMatchObject({ message: expect.stringContaining('guest panicked') });
    expect(refused.status?.channels).toMatchObject([{ version: one, reason: 'VerificationFailed' }]);
    expect((await golden.flow.get(dataSourceKind.type, 'fedora'))?.spec.source.pvc?.name).toBe(one);

    await until(({ status }) => status?.pendingRemovals === undefined);
    for (const kind of [jobs, virtualMachineInstances, dataVolumes] as const) expect(await goneOf(kind)).toEqual([]);
  });

  /** Names of what is left of checks, a moment after they ended. */
  const goneOf = async (kind: typeof jobs | typeof virtualMachineInstances | typeof dataVolumes) => {
    for (let look = 0; ; look += 1) {
      const { items } = await golden.cluster.kube.list(kind as typeof jobs, {
        namespace,
        labelSelector: 'bullion.dev/role=check',
      });
      if (items.length === 0 || look > 100) return items.map(({ metadata }) => metadata.name);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };
});
