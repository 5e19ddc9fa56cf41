// Harvester images stored as DataVolumes of Bullion: imported, exported from a volume of another namespace, cloned, rejected, deleted. Real bytes.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, namespaces } from '#shared/api/foreign/core.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { type DiskCluster, startQcow2Cluster } from '#test/support/disk-cluster.ts';
import { leftOvers, namespace } from '#test/support/cluster.ts';
import { untilStatus } from '#test/support/until.ts';

const run = promisify(execFile);
const type = harvesterImageKind.type;
const mib = 2 ** 20;
type Status = NonNullable<HarvesterImage['status']>;

describe('images stored as DataVolumes', { timeout: 500_000 }, () => {
  let offered: DiskCluster;
  let raw: string;
  let url: string;
  let cluster: DiskCluster['cluster'];

  const anImage = (name: string, spec: object): HarvesterImage => ({
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    metadata: { name, namespace },
    spec: {
      backend: 'cdi',
      displayName: name,
      targetStorageClassName: 'local',
      retry: 0,
      ...spec,
    } as unknown as HarvesterImage['spec'],
  });
  const settle = async (image: HarvesterImage): Promise<Status> => {
    await vi.waitFor(() => cluster.kube.create(type, image), { timeout: 60_000, interval: 1_000 });
    const isOver = ({ phase }: Status) => phase === 'Imported' || phase === 'Failed';
    return untilStatus(cluster.kube, type, { namespace, name: image.metadata.name }, isOver);
  };
  const compare = async (claim: string) => {
    const disk = await diskOf(cluster, { namespace, name: claim });
    await expect(run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, disk])).resolves.toBeDefined();
  };

  beforeAll(async () => {
    offered = await startQcow2Cluster();
    ({ raw, url, cluster } = offered);
  }, 180_000);
  afterAll(() => offered?.close());

  it('are imported into a volume of their name', async () => {
    const status = await settle(anImage('leap', { sourceType: 'download', url }));
    expect(status).toMatchObject({ phase: 'Imported', progress: 100, virtualSize: 64 * mib });
    await compare('leap');
    const key = { namespace, name: 'leap' };
    for (const kept of [persistentVolumeClaims, dataVolumeKind.type] as unknown as readonly ResourceType[])
      await expect(cluster.kube.delete(kept, key)).rejects.toThrow(`${namespace}/leap: delete that image instead`);
    const claim = await cluster.kube.get(persistentVolumeClaims, { namespace, name: 'leap' });
    expect(claim?.metadata.ownerReferences).toMatchObject([{ kind: 'DataVolume', name: 'leap' }]);
    expect(await cluster.kube.get(dataVolumeKind.type, { namespace, name: 'leap' })).toMatchObject({
      metadata: { ownerReferences: [{ kind: 'VirtualMachineImage', name: 'leap' }] },
      status: { phase: 'Succeeded' },
    });
  });

  it('are created from a volume of another namespace', async () => {
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } });
    const storage = { storageClassName: 'local', resources: { requests: { storage: '64Mi' } } };
    await cluster.kube.create(dataVolumeKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name: 'disk', namespace: 'other' },
      spec: { source: { http: { url } }, storage },
    });
    const status = await settle(
      anImage('exported', { sourceType: 'export-from-volume', pvcName: 'disk', pvcNamespace: 'other' }),
    );
    expect(status).toMatchObject({ phase: 'Imported', virtualSize: 64 * mib });
    await compare('exported');
    await cluster.kube.delete(dataVolumeKind.type, { namespace: 'other', name: 'disk' });
  });

  it('fail with the reason of their DataVolume', async () => {
    const nowhere = url.replace(/[^/]+$/, 'nothing.qcow2');
    const status = await settle(anImage('nowhere', { sourceType: 'download', url: nowhere }));
    const ready = status.conditions?.find((condition) => condition.type === 'Ready');
    expect(ready).toMatchObject({ status: 'False', reason: 'SourceNotFound' });
  });

  it('delete all their children', async () => {
    for await (const { metadata } of cluster.kube.listAll(type)) {
      await cluster.kube.delete(type, { namespace, name: metadata.name });
    }
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });
});
