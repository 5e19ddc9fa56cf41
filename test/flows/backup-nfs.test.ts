// The same with an NFS export, which the setting of Harvester names: written by Jobs that mount it, read by the function that has it mounted.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import { harvesterSettings } from '#shared/api/foreign/backup.ts';
import { type BackupImageObject, imageTypes } from '#shared/backup/image.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { isBack, isKept, untilImage } from '#test/support/backup.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { type NfsExport, startNfsExport } from '#test/support/nfs-export.ts';

const key = { namespace: 'default', name: 'jammy' };
const hypercloud = imageTypes[1] as ResourceType<BackupImageObject>;

describe('an image on an NFS export', { timeout: 900_000 }, () => {
  let nfs: NfsExport;
  let cluster: TestCluster;

  const start = async (): Promise<void> => {
    cluster = await startTestCluster({ tickSeconds: 5, functionEnvironment: nfs.environment });
    const value = JSON.stringify({ type: 'nfs', endpoint: nfs.endpoint, refreshIntervalInSeconds: 0 });
    await cluster.kube.create(harvesterSettings, {
      apiVersion: 'harvesterhci.io/v1beta1',
      kind: 'Setting',
      metadata: { name: 'backup-target' },
      value,
    });
  };
  beforeAll(async () => {
    nfs = await startNfsExport();
    await start();
  });
  afterAll(async () => {
    await cluster?.close();
    await nfs?.close();
  });

  it('is backed up there, and restored by the next cluster', async () => {
    await cluster.kube.create(hypercloud, {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata: key,
      spec: { storageClassName: 'local', backup: true, source: { http: nfs.url } },
    });
    await untilImage(cluster.kube, hypercloud, key, isKept);
    const kept = await readdir(join(nfs.share, 'harvester', 'vmimages', 'default-jammy'));
    expect(kept).toEqual(['vmimage-metadata.yaml']);
    await cluster.close();
    await nfs.files.close();
    await start();
    const restored = await untilImage(cluster.kube, hypercloud, key, isBack);
    const disk = await diskOf(cluster, { namespace: 'default', name: restored.status?.children?.volume ?? '' });
    await proveIdentical(disk, { file: nfs.raw, format: 'raw', compression: 'none' }, nfs.dir);
  });
});
