// Conformance scenarios of DataImportCrons that are about the form of versions: snapshots and back. From a real registry. Numbers are those of the
// table in shared/resources/data-import-cron/README.md.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { noise } from '#test/support/disk.ts';
import { isUpToDate, pointsTo, untilOffered, versionOf } from '#test/support/golden.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { hasRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';
const crons = dataImportCronKind.type;
const bytes = 64 * 1024;

describe.skipIf(!hasRegistry())('places of golden images', { timeout: 600_000 }, () => {
  let golden: GoldenRegistry;
  let cluster: GoldenRegistry['cluster'];
  let flow: GoldenRegistry['flow'];
  let push: GoldenRegistry['push'];
  let aCron: GoldenRegistry['aCron'];
  let contentOf: GoldenRegistry['contentOf'];
  beforeAll(async () => {
    golden = await startGoldenRegistry(namespace);
    ({ cluster, flow, push, aCron, contentOf } = golden);
  }, 300_000);
  afterAll(() => golden?.close());

  const isGone = (object: unknown) => object === undefined;

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
