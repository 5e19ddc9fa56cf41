// What `registries.conf` and `mirrors.toml` in a ConfigMap do on a whole cluster: polls and imports go to mirrors, objects say to which, and a blocked
// registry is reported as such.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { configMaps, kubeEvents, namespaces } from '#shared/api/foreign/core.ts';
import { registriesConfig, systemNamespace } from '#shared/api/names.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { untilOffered, versionOf } from '#test/support/golden.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { hasRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';

const directory = temporaryDirectory();
const disk = noise('file', 64 * 1024);

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

const files = (mirror: string) => `
[[source]]
prefix = "https://files.invalid/images"
[[source.mirror]]
location = "http://127.0.0.1:9/gone"
[[source.mirror]]
location = "${mirror}"
`;

describe.skipIf(!hasRegistry())('mirrors', { timeout: 300_000 }, () => {
  let golden: GoldenRegistry;
  let server: FileServer;
  beforeAll(async () => {
    const path = join(directory, 'disk.img');
    writeFileSync(path, disk);
    server = await startFileServer();
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
      data: {
        [registriesConfig.key]: conf(registry.host),
        [registriesConfig.filesKey]: files(new URL(server.offer('disk.img', path)).origin),
      },
    });
    // Functions read it each minute.
    await cluster.restart();
  }, 300_000);
  afterAll(async () => {
    await golden?.close();
    await server?.close();
  });
  const eventsOf = async (name: string): Promise<string> => {
    const events = await golden.cluster.kube.list(kubeEvents, { namespace });
    return events.items
      .filter(({ involvedObject }) => involvedObject.name === name)
      .map(({ reason, message }) => `${reason}: ${message}`)
      .join('\n');
  };

  it('serve polls and imports of a registry that cannot be reached', async () => {
    const { push, flow, fed, contentOf } = golden;
    const { digest } = await push('one', 'mirrored');
    const url = 'docker://quay.invalid/containerdisks/fedora:one';
    await flow.aCron('mirrored', { importsToKeep: 1, ...fed({ registry: { url } }) });
    const version = versionOf('mirrored', digest);
    await untilOffered(flow, 'mirrored', version);
    expect(await contentOf(version)).toEqual(noise('mirrored', 64 * 1024));
    const { cluster, registry } = golden;
    const from = `${registry.host}/disks/fedora`;
    const made = await cluster.kube.get(dataVolumes, { namespace, name: version });
    expect(made?.status?.detail?.servedFrom).toBe(from);
    expect(await eventsOf(version)).toContain(`its bytes came from ${from}`);
    const cron = await cluster.kube.get(dataImportCronKind.type, { namespace, name: 'mirrored' });
    expect(cron?.status?.lastPoll?.message).toContain(`; ${from} answered`);
    expect(await eventsOf('mirrored')).toContain(`; ${from} answered`);
  });

  it('serve a file of a web server that cannot be reached, and the volume says which did and why', async () => {
    const { cluster, flow } = golden;
    const volume: DataVolume = {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: {
        namespace,
        name: 'file',
        annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' },
      },
      spec: {
        source: { http: { url: 'https://files.invalid/images/disk.img' } },
        storage: { resources: { requests: { storage: '16Mi' } } },
      },
    };
    await cluster.kube.create(dataVolumes, volume);
    const filled = await flow.until(dataVolumes, 'file', (object) => object?.status?.phase === 'Succeeded');
    expect(filled.status?.detail?.servedFrom).toMatch(
      /^http:\/\/127\.0\.0\.1:\d+\/disk\.img \(http:\/\/127\.0\.0\.1:9\/gone\/disk\.img: cannot connect to 127\.0\.0\.1:9/,
    );
    expect((await golden.contentOf('file')).subarray(0, disk.length)).toEqual(disk);
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
