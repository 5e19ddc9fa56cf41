// Unmodified manifests of users, if a folder of them exists next to the repository: each reaches the state that its first comment names. Their
// hosts are known only to a proxy, which forwards to servers of the test.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthority, issueServer } from '#shared/certificate/issue.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { hyperConvergeds, ssps } from '#shared/api/foreign/boot-sources.ts';
import { namespaces, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { annotations } from '#shared/api/names.ts';
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
import { findShared } from '#test/support/shared-folder.ts';

const folder = findShared('examples');
const types = [dataImportCronKind.type, dataSourceKind.type, dataVolumes, ssps, hyperConvergeds] as readonly unknown[];
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
    const registries = ['registry.example', 'myprivateregistry.example', 'quay.io'];
    const hosts = [...registries, 'images.example'];
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
        ...Object.fromEntries(registries.map((host) => [`${host}:443`, port])),
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
    const text = readFileSync(join(folder ?? '', file), 'utf8');
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
    await flow.remove(dataSourceKind.type, 'fedora');
    await flow.until(dataSourceKind.type, 'fedora', isGone);
  });

  it('golden-dataimportcron: the released form, the short one, and a file with its checksums', async () => {
    const released = await push('containerdisks/fedora');
    const short = await push('kubevirt/fedora');
    await apply('golden-dataimportcron.yaml');
    await untilOffered(flow, 'fedora', versionOf('fedora', released.digest));
    await untilOffered(flow, 'fedora-short', versionOf('fedora-short', short.digest));
    await untilOffered(flow, 'noble', versionOf('noble', nobleDigest));
    for (const name of ['fedora-image-import-cron', 'fedora-short', 'noble']) {
      await flow.until(dataImportCronKind.type, name, isUpToDate);
      const degraded = async () =>
        conditionOf(await flow.get(dataImportCronKind.type, name), 'Degraded')?.reason ?? 'none';
      await expect.poll(degraded).toBe('AsExpected');
    }
  });

  const boot = 'kubevirt-os-images';

  it('golden-ssp: a cron and a DataSource for its template, none when a user created the golden volume', async () => {
    const { kube } = cluster;
    const { digest } = await push('kubevirt/fedora');
    for (const name of ['kubevirt', boot])
      await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const own = { namespace: boot, name: 'fedora' };
    await kube.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: own,
      spec: { storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
    });
    await apply('golden-ssp.yaml');
    const there = createGoldenFlow(kube, boot);
    const isReady = (source: DataSource | undefined) => conditionOf(source, 'Ready')?.status === 'True';
    const source = await there.until(dataSourceKind.type, 'fedora', isReady);
    expect(source.spec.source.pvc?.name).toBe('fedora');
    expect(source.metadata.annotations?.[annotations.autoUpdate]).toMatch(/^off: a golden volume of its name exists/);
    expect(await there.get(dataImportCronKind.type, 'fedora-image-cron')).toBe(undefined);
    await kube.delete(persistentVolumeClaims, own);
    await untilOffered(there, 'fedora', versionOf('fedora', digest));
    await there.until(dataImportCronKind.type, 'fedora-image-cron', isUpToDate);
    await kube.delete(ssps, { namespace: 'kubevirt', name: 'ssp-cr' });
    await there.until(dataImportCronKind.type, 'fedora-image-cron', isGone);
  });

  it('golden-hyperconverged: custom templates, and the common ones on the stored schedule', async () => {
    const { kube } = cluster;
    const customs = [await push('custom1'), await push('custom2')];
    const common = await push('containerdisks/fedora');
    for (const tag of ['9', '10'])
      await pushDisk({ host: registry.direct, repository: 'containerdisks/centos-stream' }, noise(tag, bytes), tag);
    const namespace = 'kubevirt-hyperconverged';
    await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await apply('golden-hyperconverged.yaml');
    const there = createGoldenFlow(kube, boot);
    await untilOffered(there, 'custom1', versionOf('custom1', customs[0]?.digest ?? ''));
    await untilOffered(there, 'custom2', versionOf('custom2', customs[1]?.digest ?? ''));
    await untilOffered(there, 'fedora', versionOf('fedora', common.digest));
    const { status } = (await kube.get(hyperConvergeds, { namespace, name: namespace }))!;
    const scheduleOf = async (name: string) => (await there.get(dataImportCronKind.type, name))?.spec.schedule;
    expect(status?.dataImportSchedule).toMatch(/^\d+ \d+\/12 \* \* \*$/);
    for (const name of ['fedora-image-cron', 'centos-stream9-image-cron', 'centos-stream10-image-cron'])
      await expect.poll(() => scheduleOf(name)).toBe(status?.dataImportSchedule);
    expect([await scheduleOf('custom-image1'), await scheduleOf('custom-image2')]).toEqual([
      '0 */12 * * *',
      '1 */12 * * *',
    ]);
    // Without the feature gate the custom ones are kept.
    await kube.mergePatch(
      hyperConvergeds,
      { namespace, name: namespace },
      { spec: { enableCommonBootImageImport: false } },
    );
    await there.until(dataImportCronKind.type, 'fedora-image-cron', isGone);
    expect(await scheduleOf('custom-image1')).toBe('0 */12 * * *');
  });
});
