// A disk as an image in a registry, and disks made from that image: what was exported is what is imported.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import {
  type ExportStatus,
  type VirtualMachineVolumeExport,
  volumeExportKind,
} from '#shared/api/hypercloud/volume-export.ts';
import { virtualMachinePvcKind } from '#shared/api/hypercloud/volume.ts';
import { type TestCluster, anImage, namespace, run, settle, startTestCluster } from '#test/support/cluster.ts';
import { makeLinuxDisk, publish } from '#test/support/disks.ts';
import { noise } from '#test/support/disk.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { until, untilStatus } from '#test/support/until.ts';

const apiVersion = 'hypercloud.tmaxanc.com/v1alpha1';
const exports = volumeExportKind.type;

describe.skipIf(!hasRegistry())('an export to a registry', { timeout: 300_000 }, () => {
  let dir: string;
  let raw: string;
  let registry: TestRegistry;
  let server: FileServer;
  let cluster: TestCluster;

  const make = async (name: string, tag: string): Promise<ExportStatus> => {
    const url = `docker://${registry.host}/disks/root:${tag}`;
    const wanted: VirtualMachineVolumeExport = {
      apiVersion,
      kind: 'VirtualMachineVolumeExport',
      metadata: { name, namespace },
      spec: { pvcName: 'root', destination: { registry: { url } } },
    };
    await cluster.kube.create(exports, wanted);
    const isOver = ({ state }: ExportStatus): boolean => state === 'Completed' || state === 'Error';
    return untilStatus(cluster.kube, exports, { namespace, name }, isOver);
  };

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-pushes-'));
    raw = await makeLinuxDisk(dir);
    registry = await startRegistry();
    server = await startFileServer();
    cluster = await startTestCluster({ functionEnvironment: { PLAIN_REGISTRIES: registry.host } });
    const http = server.offer('disk.qcow2', await publish(raw, 'qcow2'));
    await settle(cluster.kube, anImage('golden', { source: { http }, storageClassName: 'local' }), 150);
    await cluster.kube.create(virtualMachinePvcKind.type, {
      apiVersion,
      kind: 'VirtualMachinePvc',
      metadata: { name: 'root', namespace },
      spec: { virtualMachineImageName: 'golden' },
    });
  }, 300_000);
  afterAll(async () => {
    await cluster?.close();
    await server?.close();
    await registry?.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('becomes an image that a DataVolume imports by its digest', async () => {
    const status = await make('push', 'one');
    expect(status).toMatchObject({
      state: 'Completed',
      image: { reference: expect.stringMatching(/^docker:\/\/.*\/disks\/root@sha256:[0-9a-f]{64}$/) },
    });
    const volume: DataVolume = {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace, name: 'again' },
      spec: { source: { registry: { url: status.image!.reference } }, storage: { storageClassName: 'local' } },
    };
    await cluster.kube.create(dataVolumes, volume);
    const isThere = (object: DataVolume | undefined): boolean => object?.status?.phase === 'Succeeded';
    await until(cluster.kube, dataVolumes, { namespace, name: 'again' }, isThere);
    await run('qemu-img', [
      'compare',
      '-f',
      'raw',
      '-F',
      'raw',
      raw,
      await diskOf(cluster, { namespace, name: 'again' }),
    ]);
  });

  it('does not replace an image that was there before', async () => {
    await pushDisk({ host: registry.direct, repository: 'disks/root' }, noise('other', 64 * 1024), 'taken');
    const status = await make('second', 'taken');
    const ready = status.conditions?.find(({ type }) => type === 'Ready');
    expect(ready).toMatchObject({ status: 'False', message: expect.stringContaining('choose another tag') });
  });
});
