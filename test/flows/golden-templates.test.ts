// HyperConverged and SSP objects as users write them, on a cluster without their operators.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { hyperConvergeds, ssps } from '#shared/api/foreign/boot-sources.ts';
import { namespaces, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { until as untilObject } from '#test/support/until.ts';

const golden = 'kubevirt-os-images';

describe.skipIf(!hasRegistry())('templates of golden images', { timeout: 600_000 }, () => {
  let registry: TestRegistry;
  let cluster: TestCluster;
  beforeAll(async () => {
    registry = await startRegistry();
    cluster = await startTestCluster({ functionEnvironment: { PLAIN_REGISTRIES: registry.host } });
    for (const name of ['kubevirt', golden])
      await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await cluster.kube.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'ubuntu', namespace: golden },
      spec: { storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
    });
  });
  afterAll(async () => {
    await cluster?.close();
    await registry?.close();
  });

  const until = async <T extends KubeObject>(
    type: ResourceType<T>,
    name: string,
    isSo: (object: T | undefined) => boolean,
  ): Promise<T> => (await untilObject(cluster.kube, type, { namespace: golden, name }, isSo)) as T;
  const isReady = (source: DataSource | undefined) =>
    source?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  const aTemplate = (name: string, managedDataSource: string) => ({
    metadata: { name },
    spec: {
      schedule: '0 */12 * * *',
      managedDataSource,
      template: {
        spec: {
          source: { registry: { url: `docker://${registry.host}/kubevirt/${managedDataSource}` } },
          storage: { resources: { requests: { storage: '16Mi' } } },
        },
      },
    },
  });

  it('of an SSP as in its design: a cron and a DataSource each, none when a user created the golden volume', async () => {
    const target = { host: registry.host, repository: 'kubevirt/fedora' };
    const { digest } = await pushDisk(target, noise('fedora', 64 * 1024), 'latest');
    const old = { ...ssps, version: 'v1beta1' };
    const design: Record<string, unknown> = {
      DataImportCronTemplates: [aTemplate('fedora-image-cron', 'fedora'), aTemplate('ubuntu-cron', 'ubuntu')],
    };
    const metadata = { name: 'ssp-cr', namespace: 'kubevirt' };
    await cluster.kube.create(old, { apiVersion: 'ssp.kubevirt.io/v1beta1', kind: 'SSP', metadata, spec: design });
    const fedora = await until(dataSourceKind.type, 'fedora', isReady);
    expect(fedora.status?.source?.pvc?.name).toBe(`fedora-${digest.slice(7, 19)}`);
    expect((await until(dataSourceKind.type, 'ubuntu', isReady)).spec.source.pvc?.name).toBe('ubuntu');
    expect(await cluster.kube.get(dataImportCronKind.type, { namespace: golden, name: 'ubuntu-cron' })).toBe(undefined);
    expect((await cluster.kube.get(dataSourceKind.type, { namespace: golden, name: 'win11' }))?.spec.source).toEqual({
      pvc: { namespace: golden, name: 'win11' },
    });
    await cluster.kube.delete(ssps, { namespace: 'kubevirt', name: 'ssp-cr' });
    await until(dataImportCronKind.type, 'fedora-image-cron', (cron) => cron === undefined);
    await until(dataSourceKind.type, 'fedora', (source) => source === undefined);
  });

  it('of a HyperConverged: custom ones whatever the switch says, and the common ones with it', async () => {
    const key = { namespace: 'kubevirt', name: 'kubevirt-hyperconverged' };
    await cluster.kube.create(hyperConvergeds, {
      apiVersion: 'hco.kubevirt.io/v1beta1',
      kind: 'HyperConverged',
      metadata: key,
      spec: { enableCommonBootImageImport: false, dataImportCronTemplates: [aTemplate('custom-image1', 'custom1')] },
    });
    const custom = await until(dataImportCronKind.type, 'custom-image1', (cron) => cron !== undefined);
    expect(custom.spec).toMatchObject({ retentionPolicy: 'None', importsToKeep: 1 });
    expect(await cluster.kube.get(dataImportCronKind.type, { namespace: golden, name: 'fedora-image-cron' })).toBe(
      undefined,
    );
    // The dry run of a creation only: its source is on another network.
    await cluster.kube.mergePatch(hyperConvergeds, key, {
      spec: {
        enableCommonBootImageImport: true,
        dataImportCronTemplates: [
          {
            ...aTemplate('fedora-image-cron', 'fedora'),
            metadata: { name: 'fedora-image-cron', annotations: { extra: 'x' } },
          },
          ...['centos-stream9-image-cron', 'centos-stream10-image-cron'].map((name) => ({
            metadata: { name, annotations: { 'dataimportcrontemplate.kubevirt.io/enable': 'false' } },
          })),
        ],
      },
    });
    await until(dataImportCronKind.type, 'custom-image1', (cron) => cron === undefined);
    const fedora = await until(dataImportCronKind.type, 'fedora-image-cron', (cron) => cron !== undefined);
    expect(fedora.metadata.annotations).toMatchObject({
      extra: 'x',
      'cdi.kubevirt.io/storage.bind.immediate.requested': 'true',
    });
  });
});
