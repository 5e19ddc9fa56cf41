// DataVolumes on the local cluster: every supported source, every class, real bytes compared.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { type DataVolumeStatus, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type TestCluster, leftOvers, namespace, startTestCluster } from '#test/support/cluster.ts';
import { aDataVolume, createDataVolumeFlow, isIn, isOver } from '#test/support/data-volumes.ts';
import { makeLinuxDisk, publish } from '#test/support/disks.ts';

const run = promisify(execFile);
const type = dataVolumeKind.type;
const mib = 2 ** 20;
const immediate = { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' };

describe('data volumes', { timeout: 500_000 }, () => {
  let dir: string;
  let raw: string;
  let diskBytes: number;
  let url: string;
  let cluster: TestCluster;
  let server: FileServer;

  const { until, make, consume } = createDataVolumeFlow(() => cluster.kube);
  const sized = (extra = 0, rest: object = {}) => ({
    resources: { requests: { storage: `${diskBytes / mib + extra}Mi` } },
    ...rest,
  });
  const compare = async (claim: string) => {
    const disk = await diskOf(cluster, { namespace, name: claim });
    await expect(run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, disk])).resolves.toBeDefined();
    return (await stat(disk)).size;
  };
  const conditionsOf = ({ conditions = [] }: DataVolumeStatus) =>
    Object.fromEntries(conditions.map(({ type: name, status, reason }) => [name, `${status} ${reason}`]));

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-data-volumes-'));
    raw = await makeLinuxDisk(dir);
    diskBytes = (await stat(raw)).size;
    server = await startFileServer();
    const file = await publish(raw, 'qcow2');
    url = server.offer(basename(file), file);
    cluster = await startTestCluster();
  }, 120_000);
  afterAll(async () => {
    await cluster?.close();
    await server?.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('are populated from a web server, and report it as the original does', async () => {
    const status = await make(aDataVolume('http', { source: { http: { url } }, storage: sized() }));
    expect(status).toMatchObject({ phase: 'Succeeded', progress: '100.0%', claimName: 'http' });
    // As in CDI: counted from the first restart on.
    expect(status).not.toHaveProperty('restartCount');
    expect(conditionsOf(status)).toEqual({ Bound: 'True Bound', Running: 'False Completed', Ready: 'True Ready' });
    expect(await cluster.kube.get(persistentVolumeClaims, { namespace, name: 'http' })).toMatchObject({
      metadata: {
        labels: { app: 'containerized-data-importer' },
        annotations: {
          'cdi.kubevirt.io/storage.populatedFor': 'http',
          'cdi.kubevirt.io/storage.pod.phase': 'Succeeded',
        },
        ownerReferences: [{ kind: 'DataVolume', name: 'http', controller: true }],
      },
    });
    await compare('http');
  });

  it('use `pvc` as it is: a file system, which the disk fills', async () => {
    const pvc = sized(512, { accessModes: ['ReadWriteOnce'], storageClassName: 'local-plain' });
    expect(await make(aDataVolume('literal', { source: { http: { url } }, pvc }))).toMatchObject({
      phase: 'Succeeded',
    });
    const claim = await cluster.kube.get(persistentVolumeClaims, { namespace, name: 'literal' });
    expect(claim?.spec).toMatchObject({
      volumeMode: 'Filesystem',
      resources: { requests: { storage: `${diskBytes / mib + 512}Mi` } },
    });
    expect(await compare('literal')).toBeGreaterThan(diskBytes + 400 * mib);
  });

  it.each(['Filesystem', 'Block'] as const)(
    'allocate all of their space when preallocation is requested, and report it: %s',
    async (mode) => {
      const pvc = sized(64, { accessModes: ['ReadWriteOnce'], storageClassName: 'local-plain', volumeMode: mode });
      const name = `allocated-${mode.toLowerCase()}`;
      await make(aDataVolume(name, { source: { http: { url } }, pvc, preallocation: true }));
      const claim = await cluster.kube.get(persistentVolumeClaims, { namespace, name });
      expect(claim?.metadata.annotations).toMatchObject({
        'cdi.kubevirt.io/storage.preallocation.requested': 'true',
        'cdi.kubevirt.io/storage.preallocation': 'true',
      });
      const { size, blocks } = await stat(await diskOf(cluster, { namespace, name }));
      expect(blocks * 512).toBeGreaterThanOrEqual(size);
      await compare(name);
    },
  );

  it('clone a volume through a temporary snapshot', async () => {
    const source = { pvc: { namespace, name: 'http' } };
    const status = await make(aDataVolume('clone', { source, storage: {} }));
    expect(status).toMatchObject({ phase: 'Succeeded', detail: { cloneStrategy: 'snapshot' } });
    await compare('clone');
    await until('clone', () => true);
    const listed = async () => (await cluster.kube.list(volumeSnapshots, { namespace })).items;
    await expect.poll(listed).toEqual([]);
  });

  it('clone a volume that is created later', async () => {
    await make(aDataVolume('early', { source: { pvc: { namespace, name: 'late' } }, storage: {} }), isIn('Pending'));
    await make(
      aDataVolume('late', { source: { http: { url } }, storage: sized(0, { storageClassName: 'local-plain' }) }),
    );
    expect(await until('early', isOver)).toMatchObject({ phase: 'Succeeded', detail: { cloneStrategy: 'copy' } });
    await compare('early');
  });

  it('restore a snapshot', async () => {
    await cluster.kube.create(volumeSnapshots, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { name: 'kept', namespace },
      spec: { source: { persistentVolumeClaimName: 'http' } },
    });
    const source = { snapshot: { namespace, name: 'kept' } };
    const storage = { storageClassName: 'local' };
    expect(await make(aDataVolume('restored', { source, storage }))).toMatchObject({ phase: 'Succeeded' });
    await compare('restored');
    // No pod uses it, and its class waits for a consumer.
    const atOnce = aDataVolume('bound', { source, storage: { storageClassName: 'local-wffc' } }, immediate);
    expect(await make(atOnce)).toMatchObject({ phase: 'Succeeded', detail: { cloneStrategy: 'snapshot' } });
    await compare('bound');
    // Its storage cannot, and nothing but the snapshot is checked.
    const other = { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem', storageClassName: 'local' };
    const larger = await make(aDataVolume('other-mode', { source, pvc: sized(512, other) }));
    expect(larger).toMatchObject({ phase: 'Succeeded', detail: { cloneStrategy: 'copy' } });
    expect(await compare('other-mode')).toBeGreaterThan(diskBytes + 400 * mib);
    const { items } = await cluster.kube.list(persistentVolumeClaims, { namespace });
    expect(items.filter(({ metadata }) => metadata.name.startsWith('restored-'))).toEqual([]);
    await cluster.kube.delete(volumeSnapshots, { namespace, name: 'kept' });
  });

  it('clone what a DataSource refers to', async () => {
    await cluster.kube.create(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { name: 'linux', namespace },
      spec: { source: { pvc: { namespace, name: 'http' } } },
    });
    const sourceRef = { kind: 'DataSource', name: 'linux' };
    expect(await make(aDataVolume('by-name', { sourceRef, storage: sized(32) }))).toMatchObject({ phase: 'Succeeded' });
    expect(await compare('by-name')).toBe(diskBytes + 32 * mib);
  });

  it('are blank, with the requested size', async () => {
    const pvc = sized(0, { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem' });
    expect(await make(aDataVolume('blank', { source: { blank: {} }, pvc }))).toMatchObject({ phase: 'Succeeded' });
    const disk = await diskOf(cluster, { namespace, name: 'blank' });
    const { size, blocks } = await stat(disk);
    expect(size).toBeGreaterThan(0);
    expect(blocks * 512).toBeLessThan(mib);
  });

  it('wait for their first consumer, and are populated before another pod writes to them', async () => {
    const storage = sized(0, { storageClassName: 'local-wffc' });
    const status = await make(
      aDataVolume('wffc', { source: { http: { url } }, storage }),
      isIn('WaitForFirstConsumer'),
    );
    expect(conditionsOf(status)).toMatchObject({ Bound: 'False Pending', Ready: 'False WaitForFirstConsumer' });
    await consume('wffc');
    await compare('wffc');
  });

  it('do not wait when immediate binding is requested', async () => {
    const storage = sized(0, { storageClassName: 'local-wffc' });
    await make(aDataVolume('at-once', { source: { http: { url } }, storage }, immediate));
    await expect(compare('at-once')).resolves.toBe(diskBytes);
  });

  it('fail finally when their source does not exist, and say why', async () => {
    const wrong = url.replace(/[^/]+$/, 'nothing.qcow2');
    const status = await make(aDataVolume('wrong', { source: { http: { url: wrong } }, storage: sized() }));
    expect(status.phase).toBe('Failed');
    expect(conditionsOf(status)).toMatchObject({ Running: 'False Error', Ready: 'False SourceNotFound' });
  });

  it('are rejected with a message when they request what is not served', async () => {
    const asked = aDataVolume('ovirt', { source: { imageio: { url: 'https://a/b', diskId: 'x' } }, storage: sized() });
    await expect(cluster.kube.create(type, asked)).rejects.toThrow(/spec\.source\.imageio.*download the disk/);
  });

  it('delete all their children', async () => {
    for await (const { metadata } of cluster.kube.listAll(type)) {
      await cluster.kube.delete(type, { namespace, name: metadata.name });
    }
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });
});
