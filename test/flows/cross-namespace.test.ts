// DataVolumes made from sources in another namespace, on every local class, real bytes compared.
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type DataVolume, type DataVolumeStatus, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { jobs, namespaces, persistentVolumeClaims, persistentVolumes } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type DiskCluster, startQcow2Cluster } from '#test/support/disk-cluster.ts';
import { leftOvers } from '#test/support/cluster.ts';
import { untilStatus } from '#test/support/until.ts';

const run = promisify(execFile);
const type = dataVolumeKind.type;
const mib = 2 ** 20;
const diskBytes = 64 * mib;
const golden = 'golden-images';
const tenant = 'tenant';

const aDataVolume = (namespace: string, name: string, spec: object): DataVolume => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name, namespace },
  spec: spec as DataVolume['spec'],
});

describe('clones across namespaces', { timeout: 500_000 }, () => {
  let offered: DiskCluster;
  let raw: string;
  let cluster: DiskCluster['cluster'];

  const until = async (
    namespace: string,
    name: string,
    isSo: (status: DataVolumeStatus) => boolean,
  ): Promise<DataVolumeStatus> => untilStatus(cluster.kube, type, { namespace, name }, isSo);
  const isOver = ({ phase }: DataVolumeStatus) => phase === 'Succeeded' || phase === 'Failed';
  const make = async (object: DataVolume, isSo = isOver): Promise<DataVolumeStatus> => {
    // A busy webhook causes a rejection by the failure policy: a client retries.
    await vi.waitFor(() => cluster.kube.create(type, object), { timeout: 60_000, interval: 1_000 });
    return until(object.metadata.namespace ?? '', object.metadata.name, isSo);
  };
  const compare = async (claim: string) => {
    const disk = await diskOf(cluster, { namespace: tenant, name: claim });
    await expect(run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, disk])).resolves.toBeDefined();
  };
  const storage = (storageClassName: string, size = diskBytes / mib) => ({
    storageClassName,
    resources: { requests: { storage: `${size}Mi` } },
  });

  /** The labels from which KubeVirt infers how to run a disk. */
  const inferred = {
    'instancetype.kubevirt.io/default-instancetype': 'u1.medium',
    'instancetype.kubevirt.io/default-preference': 'fedora',
  };

  beforeAll(async () => {
    offered = await startQcow2Cluster();
    ({ raw, cluster } = offered);
    const { url } = offered;
    for (const name of [golden, tenant]) {
      await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    for (const name of ['local', 'local-plain', 'local-wffc']) {
      const immediate = { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' };
      const made = aDataVolume(golden, name, { source: { http: { url } }, storage: storage(name) });
      await make({ ...made, metadata: { ...made.metadata, annotations: immediate, labels: inferred } });
    }
    await cluster.kube.create(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { name: 'fedora', namespace: golden },
      spec: { source: { pvc: { namespace: golden, name: 'local' } } },
    });
  }, 180_000);
  afterAll(() => offered?.close());

  it.each(['local', 'local-plain', 'local-wffc'])(
    'copy a volume of class %s, and leave no object there',
    async (name) => {
      const source = { pvc: { namespace: golden, name } };
      const status = await make(aDataVolume(tenant, `of-${name}`, { source, storage: storage(name) }));
      expect(status).toMatchObject({
        phase: 'Succeeded',
        claimName: `of-${name}`,
        detail: { cloneStrategy: name === 'local' ? 'snapshot' : 'copy' },
      });
      await compare(`of-${name}`);
      const claim = await cluster.kube.get(persistentVolumeClaims, { namespace: tenant, name: `of-${name}` });
      const volume = await cluster.kube.get(persistentVolumes, { name: claim?.spec.volumeName ?? '' });
      expect(volume?.spec).toMatchObject({
        persistentVolumeReclaimPolicy: 'Delete',
        claimRef: { namespace: tenant, name: `of-${name}`, uid: claim?.metadata.uid },
      });
      expect(volume?.metadata.annotations).not.toHaveProperty('bullion.dev/handover');
      const left = async (): Promise<readonly string[]> => {
        const { items } = await cluster.kube.list(persistentVolumeClaims, { namespace: golden });
        const snapshots = (await cluster.kube.list(volumeSnapshots, { namespace: golden })).items;
        return [...items.filter(({ metadata }) => metadata.name.startsWith('clone-')), ...snapshots].map(
          ({ metadata }) => metadata.name,
        );
      };
      await expect.poll(left).toEqual([]);
    },
  );

  it.each(['local', 'local-plain', 'local-wffc'])(
    'of class %s have the labels that KubeVirt infers defaults from, and record how they were made',
    async (name) => {
      const key = { namespace: tenant, name: `of-${name}` };
      const claim = await cluster.kube.get(persistentVolumeClaims, key);
      const clone = await cluster.kube.get(type, key);
      expect(claim?.metadata.labels).toMatchObject(inferred);
      expect(clone?.metadata.labels).toMatchObject(inferred);
      const marks = claim?.metadata.annotations ?? {};
      expect(marks['cdi.kubevirt.io/cloneType']).toBe(name === 'local' ? 'snapshot' : 'copy');
      expect('cdi.kubevirt.io/cloneFallbackReason' in marks).toBe(name !== 'local');
      expect(clone?.status?.conditions?.find((one) => one.type === 'Running')?.message).toBe('Clone Complete');
    },
  );

  it('are made from the source of a DataSource in another namespace, in another form', async () => {
    const pvc = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '256Mi' } } };
    const sourceRef = { kind: 'DataSource', namespace: golden, name: 'fedora' };
    const status = await make(aDataVolume(tenant, 'my-fedora', { sourceRef, pvc }));
    expect(status).toMatchObject({ phase: 'Succeeded', detail: { cloneStrategy: 'copy' } });
    const claim = await cluster.kube.get(persistentVolumeClaims, { namespace: tenant, name: 'my-fedora' });
    expect(claim?.spec).toMatchObject({ volumeMode: 'Filesystem', resources: { requests: { storage: '256Mi' } } });
    const disk = await diskOf(cluster, { namespace: tenant, name: 'my-fedora' });
    expect((await stat(disk)).size).toBeGreaterThan(diskBytes);
    await expect(run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, disk])).resolves.toBeDefined();
  });

  it('restore a snapshot, which is kept', async () => {
    const key = { namespace: golden, name: 'before' };
    await cluster.kube.create(volumeSnapshots, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: key,
      spec: { source: { persistentVolumeClaimName: 'local' } },
    });
    const isReady = async () => (await cluster.kube.get(volumeSnapshots, key))?.status?.readyToUse;
    await expect.poll(isReady, { timeout: 60_000 }).toBe(true);
    const status = await make(
      aDataVolume(tenant, 'restored', { source: { snapshot: key }, storage: storage('local') }),
    );
    expect(status).toMatchObject({ phase: 'Succeeded', detail: { cloneStrategy: 'snapshot' } });
    await compare('restored');
    // In the same way as golden images, for a machine whose class waits for it: a Job has to be the first consumer.
    const late = aDataVolume(tenant, 'restored-late', { source: { snapshot: key }, storage: storage('local-wffc') });
    expect(await make(late)).toMatchObject({ phase: 'Succeeded', detail: { cloneStrategy: 'copy' } });
    await compare('restored-late');
    const { items } = await cluster.kube.list(persistentVolumeClaims, { namespace: golden });
    expect(items.filter(({ metadata }) => metadata.name.startsWith('restored-'))).toEqual([]);
    expect(await isReady()).toBe(true);
    await cluster.kube.delete(volumeSnapshots, key);
  });

  it('are rejected when the volume is too small, with both sizes', async () => {
    const source = { pvc: { namespace: golden, name: 'local' } };
    const status = await make(aDataVolume(tenant, 'small', { source, storage: storage('local', 32) }));
    expect(status.phase).toBe('Failed');
    const ready = status.conditions?.find(({ type: name }) => name === 'Ready');
    expect(ready).toMatchObject({
      reason: 'CloneValidationFailed',
      message: expect.stringMatching(/67108864.*33554432/),
    });
  });

  it('delete all their children, also in the middle', async () => {
    const source = { pvc: { namespace: golden, name: 'local-plain' } };
    await make(
      aDataVolume(tenant, 'given-up', { source, storage: storage('local-plain') }),
      ({ claimName }) => claimName !== undefined,
    );
    for (const namespace of [tenant, golden]) {
      for await (const { metadata } of cluster.kube.listAll(type, { namespace })) {
        await cluster.kube.delete(type, { namespace, name: metadata.name });
      }
    }
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
    expect((await cluster.kube.list(jobs)).items).toEqual([]);
  });
});
