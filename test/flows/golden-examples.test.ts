// Manifests as users bring them, unmodified, where a folder of them lies beside the repository: each reaches the state that its first comment
// names. Their hosts are known to a proxy alone, which leads them to servers of the test.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthority, issueServer } from '#shared/certificate/issue.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import { type ForwardProxy, startForwardProxy } from '#test/support/forward-proxy.ts';
import {
  type GoldenFlow,
  conditionOf,
  createGoldenFlow,
  isUpToDate,
  untilOffered,
  versionOf,
} from '#test/support/golden.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';

const folder = ['../../../shared/examples/', '../../../../shared/examples/']
  .map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(url));
const types = [dataImportCronKind.type, dataSourceKind.type, dataVolumes] as readonly unknown[];
const bytes = 64 * 1024;
const golden = 'golden-images';

describe.skipIf(folder === undefined || !hasRegistry())('manifests of golden images', { timeout: 600_000 }, () => {
  let registry: TestRegistry;
  let proxy: ForwardProxy;
  let cluster: TestCluster;
  let flow: GoldenFlow;
  const noble = noise('noble', bytes);
  const nobleDigest = `sha256:${createHash('sha256').update(noble).digest('hex')}`;
  const closing: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    const validity = { from: new Date(Date.now() - 60_000), to: new Date(Date.now() + 86_400_000) };
    const authority = createAuthority('examples', validity);
    const hosts = ['registry.example', 'images.example'];
    const tls = issueServer(authority, hosts, validity);
    registry = await startRegistry({ tls });
    const files = createServer({ cert: tls.certificate, key: tls.key }, ({ url }, response) =>
      url?.endsWith('/SHA256SUMS') === true
        ? response.end(`${nobleDigest.slice(7)} *noble-server-cloudimg-amd64.img\n`)
        : response.end(noble),
    );
    files.listen(0, '127.0.0.1');
    await once(files, 'listening');
    closing.push(() => {
      files.closeAllConnections();
      return new Promise((resolve) => files.close(resolve));
    });
    const port = Number(registry.host.split(':')[1]);
    proxy = await startForwardProxy({
      ports: {
        'registry.example:443': port,
        'images.example:443': (files.address() as AddressInfo).port,
      },
    });
    cluster = await startTestCluster({
      functionEnvironment: { HTTPS_PROXY: proxy.url, PROXY_CA: authority.certificate },
    });
    flow = createGoldenFlow(cluster.kube, golden);
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: golden } });
  }, 300_000);
  afterAll(async () => {
    await cluster?.close();
    await Promise.all([...closing.map((close) => close()), proxy?.close(), registry?.close()]);
  });

  const push = (repository: string) =>
    pushDisk({ host: registry.direct, repository }, noise(repository, bytes), 'latest');
  const typeOf = ({ kind }: KubeObject) =>
    (types as readonly ResourceType[]).find((type) => type.kind === kind) as ResourceType;
  const apply = async (file: string): Promise<readonly KubeObject[]> => {
    const text = readFileSync(new URL(file, folder), 'utf8');
    const objects = parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
    for (const object of objects) {
      const { metadata } = object;
      const placed = { ...object, metadata: { ...metadata, namespace: metadata.namespace ?? 'default' } };
      await cluster.kube.create(typeOf(object), placed);
    }
    return objects;
  };
  const isGone = (object: unknown) => object === undefined;

  it('golden-datasource and golden-datavolume-sourceref: ready with its volume, and cloned from it', async () => {
    await apply('golden-datasource.yaml');
    await flow.until(dataSourceKind.type, 'fedora', (source) => conditionOf(source, 'Ready')?.reason === 'NotFound');
    const { kube } = cluster;
    const { digest } = await push('golden/fedora-32');
    await kube.create(dataVolumes, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: {
        namespace: golden,
        name: 'fedora-32-001',
        annotations: { [cdiAnnotations.immediateBinding]: 'true' },
      },
      spec: {
        source: { registry: { url: `docker://registry.example/golden/fedora-32@${digest}` } },
        pvc: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    });
    await flow.until(dataSourceKind.type, 'fedora', (source) => conditionOf(source, 'Ready')?.status === 'True');
    await apply('golden-datavolume-sourceref.yaml');
    const disk = await createGoldenFlow(kube, 'default').until(
      dataVolumes,
      'my-fedora-vm-image',
      (volume) => volume?.status?.phase === 'Succeeded' || volume?.status?.phase === 'Failed',
    );
    expect(disk.status?.phase).toBe('Succeeded');
    await flow.remove(dataSourceKind.type as unknown as ResourceType, 'fedora');
    await flow.until(dataSourceKind.type, 'fedora', isGone);
  });

  it('golden-dataimportcron: the released shape, the short one, and a file with its checksums', async () => {
    const released = await push('containerdisks/fedora');
    const short = await push('kubevirt/fedora');
    await apply('golden-dataimportcron.yaml');
    await untilOffered(flow, 'fedora', versionOf('fedora', released.digest));
    await untilOffered(flow, 'fedora-short', versionOf('fedora-short', short.digest));
    await untilOffered(flow, 'noble', versionOf('noble', nobleDigest));
    for (const name of ['fedora-image-import-cron', 'fedora-short', 'noble']) {
      const cron = await flow.until(dataImportCronKind.type, name, isUpToDate);
      expect(conditionOf(cron, 'Degraded')?.reason).toBe('AsExpected');
    }
  });
});
