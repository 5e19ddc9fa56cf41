// What `registries.conf` in a ConfigMap does on a whole cluster: polls and imports go to mirrors, and a blocked registry is reported as such.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { configMaps, namespaces } from '#shared/api/foreign/core.ts';
import { registriesConfig, systemNamespace } from '#shared/api/names.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import { noise } from '#test/support/disk.ts';
import { untilOffered, versionOf } from '#test/support/golden.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { hasRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';

const conf = (mirror: string) => `
[[registry]]
location = "quay.invalid/containerdisks"
[[registry.mirror]]
location = "${mirror}/disks"
insecure = true

[[registry]]
prefix = "*.blocked.invalid"
blocked = true
`;

describe.skipIf(!hasRegistry())('mirrors of registries', { timeout: 300_000 }, () => {
  let golden: GoldenRegistry;
  beforeAll(async () => {
    golden = await startGoldenRegistry(namespace);
    const { cluster, registry } = golden;
    await cluster.kube
      .create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: systemNamespace } })
      .catch((error: unknown) => {
        if (!isConflict(error)) throw error;
      });
    await cluster.kube.create(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: systemNamespace, name: registriesConfig.name },
      data: { [registriesConfig.key]: conf(registry.host) },
    });
    // Functions read it each minute.
    await cluster.restart();
  }, 300_000);
  afterAll(() => golden?.close());

  it('serve polls and imports of a registry that cannot be reached', async () => {
    const { push, flow, fed, contentOf } = golden;
    const { digest } = await push('one', 'mirrored');
    const url = 'docker://quay.invalid/containerdisks/fedora:one';
    await flow.aCron('mirrored', { importsToKeep: 1, ...fed({ registry: { url } }) });
    const version = versionOf('mirrored', digest);
    await untilOffered(flow, 'mirrored', version);
    expect(await contentOf(version)).toEqual(noise('mirrored', 64 * 1024));
  });

  it('are not asked for what is blocked: the object says who decided that', async () => {
    const { cluster, flow } = golden;
    const volume: DataVolume = {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace, name: 'blocked' },
      spec: {
        source: { registry: { url: 'docker://hub.blocked.invalid/team/disk:1' } },
        storage: { resources: { requests: { storage: '16Mi' } } },
      },
    };
    await cluster.kube.create(dataVolumes, volume);
    const reported = await flow.until(dataVolumes, 'blocked', (object) =>
      JSON.stringify(object?.status ?? {}).includes('blocked by registries.conf'),
    );
    expect(reported.status?.phase).not.toBe('Succeeded');
  });
});
