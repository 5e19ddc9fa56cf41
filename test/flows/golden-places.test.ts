// Conformance scenarios of DataImportCrons that are about the form of versions: snapshots and back. From a real registry. Numbers are those of the
// table in shared/resources/data-import-cron/README.md.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { type CronSourceSpec, type DataImportCronSpec, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { namespaces, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import {
  type GoldenFlow,
  createGoldenFlow,
  isUpToDate,
  pointsTo,
  untilOffered,
  versionOf,
} from '#test/support/golden.ts';
import { type PushTarget, pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';
const crons = dataImportCronKind.type;
const bytes = 64 * 1024;

describe.skipIf(!hasRegistry())('places of golden images', { timeout: 600_000 }, () => {
  let registry: TestRegistry;
  let cluster: TestCluster;
  let flow: GoldenFlow;
  let target: PushTarget;
  beforeAll(async () => {
    registry = await startRegistry();
    target = { host: registry.host, repository: 'disks/fedora' };
    cluster = await startTestCluster({ functionEnvironment: { PLAIN_REGISTRIES: registry.host } });
    flow = createGoldenFlow(cluster.kube, namespace);
    for (const name of [namespace, 'elsewhere'])
      await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }, 300_000);
  afterAll(async () => {
    await cluster?.close();
    await registry?.close();
  });

  const push = (name: string, seed: string) => pushDisk(target, noise(seed, bytes), name);
  const urlOf = (name: string) => `docker://${registry.host}/disks/fedora:${name}`;
  const fed = (source: CronSourceSpec, storage: object = {}): Partial<DataImportCronSpec> => ({
    template: { spec: { source, storage: { resources: { requests: { storage: '16Mi' } }, ...storage } } },
  });
  const aCron = (name: string, over: Partial<DataImportCronSpec> = {}, storage: object = {}) =>
    flow.aCron(name, { importsToKeep: 1, ...fed({ registry: { url: urlOf(name) } }, storage), ...over });
  const isGone = (object: unknown) => object === undefined;
  const contentOf = async (claim: string, place = namespace): Promise<Buffer> =>
    (await readFile(await diskOf(cluster, { namespace: place, name: claim }))).subarray(0, bytes);

  it('13, 14: a version becomes a snapshot of the class the profile names, is cloned the same, and becomes a volume again', async () => {
    const { provisioner } = (await cluster.kube.get(storageClasses, { name: 'local' }))!;
    await cluster.kube.create(storageClasses, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'formed' },
      provisioner,
      allowVolumeExpansion: true,
      volumeBindingMode: 'Immediate',
    });
    const { apiVersion, kind, driver, deletionPolicy } = (await cluster.kube.get(volumeSnapshotClasses, {
      name: 'local',
    }))!;
    await cluster.kube.create(volumeSnapshotClasses, {
      apiVersion,
      kind,
      metadata: { name: 'images' },
      driver,
      deletionPolicy,
    });
    const { digest } = await push('formed', 'formed');
    const version = versionOf('formed', digest);
    await aCron('formed', {}, { storageClassName: 'formed' });
    await untilOffered(flow, 'formed', version);
    const clone = async (name: string): Promise<void> => {
      await cluster.kube.create(dataVolumeKind.type, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataVolume',
        metadata: { namespace, name, annotations: { [cdiAnnotations.immediateBinding]: 'true' } },
        spec: { sourceRef: { kind: 'DataSource', name: 'formed' }, storage: { storageClassName: 'formed' } },
      });
      await flow.until(dataVolumes, name, (object) => object?.status?.phase === 'Succeeded');
      expect(await contentOf(name)).toEqual(noise('formed', bytes));
    };
    await clone('of-the-volume');
    const ask = (format: string) =>
      cluster.kube.mergePatch(
        storageProfiles,
        { name: 'formed' },
        {
          metadata: { annotations: { [cdiAnnotations.snapshotClass]: 'images' } },
          spec: { dataImportCronSourceFormat: format },
        },
      );
    await flow.until(crons, 'formed', isUpToDate);
    await ask('snapshot');
    const source = await flow.until(dataSourceKind.type, 'formed', pointsTo(version, 'snapshot'));
    expect(source.spec.source).toEqual({ snapshot: { namespace, name: version } });
    await flow.until(persistentVolumeClaims, version, isGone);
    expect(await flow.get(volumeSnapshots, version)).toMatchObject({
      metadata: {
        labels: { [cdiLabels.cron]: 'formed' },
        annotations: {
          [cdiAnnotations.advisedRestoreSize]: expect.any(String),
          [cdiAnnotations.sourceVolumeMode]: expect.stringMatching(/^(Block|Filesystem)$/),
        },
      },
      spec: { volumeSnapshotClassName: 'images' },
    });
    await clone('of-the-snapshot');
    await flow.until(crons, 'formed', isUpToDate);
    await ask('pvc');
    const again = await flow.until(dataSourceKind.type, 'formed', pointsTo(version));
    expect(again.spec.source).toEqual({ pvc: { namespace, name: version } });
    await flow.until(volumeSnapshots, version, isGone);
  });
});
