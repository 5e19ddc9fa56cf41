// The capabilities of a storage class, and what depends on them: images, root disks, empty data disks, exports, templates, snapshots. One row for each
// kind of storage, by its behaviour; real bytes compared. Also what users do with plain snapshots: clone and restore.
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, pods, storageClasses } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { cdi } from '#shared/backends/cdi/index.ts';
import { csi } from '#shared/backends/csi/index.ts';
import { claimProfileOf, claimSetsOf, completeClaim } from '#shared/populate/storage/profile.ts';
import { type DiskCluster, startQcow2Cluster } from '#test/support/disk-cluster.ts';
import { aStorageClass } from '#test/support/builders.ts';
import { namespace, run } from '#test/support/cluster.ts';
import { aConsumer, aDataVolume } from '#test/support/data-volumes.ts';
import { until as untilObject } from '#test/support/until.ts';

const images = harvesterImageKind.type;
const backends = { cdi, csi };
const mib = 2 ** 20;

/** A row of the matrix: storage by its behaviour. */
interface Storage {
  readonly className: string;
  readonly backend: 'csi' | 'cdi';
  readonly volumeMode: 'Block' | 'Filesystem';
  readonly snapshots: boolean;
  /** A volume is bound once a pod uses it. */
  readonly waits?: true;
  /** The clone strategy in its class. */
  readonly clone?: 'csi-clone';
}

const matrix: readonly (readonly [name: string, storage: Storage])[] = [
  [
    'binds at once, snapshots and clones (as Ceph RBD)',
    { className: 'local', backend: 'cdi', volumeMode: 'Block', snapshots: true },
  ],
  ['the same without a CDI', { className: 'local', backend: 'csi', volumeMode: 'Block', snapshots: true }],
  [
    'waits for a consumer, snapshots (as LVM)',
    { className: 'local-wffc', backend: 'cdi', volumeMode: 'Block', snapshots: true, waits: true },
  ],
  [
    'clones by its own means alone (as Longhorn v2)',
    { className: 'local-clone', backend: 'csi', volumeMode: 'Block', snapshots: true, clone: 'csi-clone' },
  ],
  ['volumes alone (as NFS)', { className: 'local-plain', backend: 'cdi', volumeMode: 'Filesystem', snapshots: false }],
];

/** Machines that may be live-migrated: those whose disks two nodes can mount at once. */
describe('live migration', () => {
  it.each([
    ['Longhorn v2', 'driver.longhorn.io', { dataEngine: 'v2', migratable: 'true' }, true],
    ['Rook RBD', 'rook-ceph.rbd.csi.ceph.com', {}, true],
    ['LVM', 'lvm.driver.harvesterhci.io', {}, false],
    ['NFS', 'nfs.csi.k8s.io', {}, true],
  ] as const)('is offered on what can do it: %s', (_name, provisioner, parameters, isOffered) => {
    const modes = completeClaim(claimSetsOf(aStorageClass('any', { provisioner, parameters })), {});
    expect(modes?.accessModes.includes('ReadWriteMany') === true).toBe(isOffered);
  });
});

describe('storage', { timeout: 400_000 }, () => {
  let offered: DiskCluster;
  let raw: string;
  let url: string;
  let cluster: DiskCluster['cluster'];

  const until = async <T extends KubeObject>(type: ResourceType<T>, name: string, isSo: (object: T) => boolean) =>
    (await untilObject(cluster.kube, type, { namespace, name }, (object) => object !== undefined && isSo(object)))!;
  const anImage = (name: string, { className, backend }: Storage, spec: object): HarvesterImage => ({
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    metadata: { name, namespace },
    spec: {
      backend,
      displayName: name,
      targetStorageClassName: className,
      retry: 0,
      ...spec,
    } as unknown as HarvesterImage['spec'],
  });
  const reasonOf = ({ status }: HarvesterImage, type: string): string | undefined =>
    status?.conditions?.find((condition) => condition.type === type)?.reason;
  const imported = async (image: HarvesterImage): Promise<string> => {
    await cluster.kube.create(images, image);
    const { status } = await until(images, image.metadata.name, (object) => object.status?.phase === 'Imported');
    return status?.children?.volume ?? '';
  };
  /** Like the machine that uses the disk. */
  const useOnce = async (claimName: string): Promise<void> => {
    const name = `uses-${claimName}`;
    await cluster.kube.create(pods, aConsumer(name, claimName));
    await until(pods, name, ({ status }) => status?.phase === 'Succeeded');
  };
  const dataVolume = async (name: string, spec: object, isUsed = false): Promise<void> => {
    const atOnce = { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' };
    await cluster.kube.create(dataVolumes, aDataVolume(name, spec, atOnce));
    if (isUsed) await useOnce(name);
    await until(dataVolumes, name, ({ status }) => status?.phase === 'Succeeded');
  };
  const diskIn = (claim: string): Promise<string> => diskOf(cluster, { namespace, name: claim });
  /** The difference to the image, in the output of qemu-img. */
  const differenceOf = async (claim: string, from = raw): Promise<string> => {
    const compare = ['compare', '-f', 'raw', '-F', 'raw', from, await diskIn(claim)];
    return run('qemu-img', compare).then(
      () => '',
      ({ stdout }: { readonly stdout: string }) => stdout,
    );
  };
  const aSnapshot = (name: string, persistentVolumeClaimName: string): VolumeSnapshot => ({
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name, namespace },
    spec: { source: { persistentVolumeClaimName } },
  });
  const aClaim = (name: string, dataSource: PersistentVolumeClaim['spec']['dataSource']): PersistentVolumeClaim => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace },
    spec: {
      storageClassName: 'local',
      volumeMode: 'Block',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '64Mi' } },
      dataSource,
    } as PersistentVolumeClaim['spec'],
  });
  const bound = (name: string) => until(persistentVolumeClaims, name, ({ status }) => status?.phase === 'Bound');
  const fromSnapshot = (name: string) => ({ apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name });

  beforeAll(async () => {
    offered = await startQcow2Cluster();
    ({ raw, url, cluster } = offered);
    const { metadata: _, ...usual } = (await cluster.kube.get(storageClasses, { name: 'local' }))!;
    const metadata = { name: 'local-clone', annotations: { 'cdi.kubevirt.io/clone-strategy': 'csi-clone' } };
    await cluster.kube.create(storageClasses, { ...usual, metadata });
  }, 300_000);
  afterAll(() => offered?.close());

  describe.each(matrix)('that %s', (_name, storage) => {
    const { className, volumeMode, snapshots, backend } = storage;
    const prefix = `${className}-${backend}`;
    const root = `${prefix}-root`;

    it('stores an image, and clones a root disk from it', async () => {
      const golden = await imported(anImage(prefix, storage, { sourceType: 'download', url }));
      expect(await differenceOf(golden)).toBe('');
      const source = { pvc: { namespace, name: golden } };
      const claim = { storageClassName: className, volumeMode, accessModes: ['ReadWriteOnce'] };
      await dataVolume(root, { source, storage: claim }, storage.waits);
      expect(await differenceOf(root)).toBe('');
      const { status } = await until(dataVolumes, root, () => true);
      const { cloneStrategy } = status?.detail ?? {};
      expect(cloneStrategy).toBe(storage.clone ?? cloneStrategy);
    });

    it('provisions an empty data disk', async () => {
      const data = `${prefix}-data`;
      const pvc = {
        storageClassName: className,
        volumeMode,
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: volumeMode === 'Block' ? '32Mi' : '128Mi' } },
      };
      await dataVolume(data, { source: { blank: {} }, pvc });
      const disk = await diskIn(data);
      const size = volumeMode === 'Block' ? 32 * mib : (await stat(disk)).size;
      const zero = join(offered.dir, `${data}.zero`);
      await (await open(zero, 'w')).close();
      await run('truncate', ['-s', String(size), zero]);
      expect(await differenceOf(data, zero)).toBe('');
    });

    it('exports a disk as a separate image, as export and template do', async () => {
      const exported = anImage(`${prefix}-export`, storage, {
        sourceType: 'export-from-volume',
        pvcName: root,
        pvcNamespace: namespace,
      });
      const isServed = backends[backend].capabilities.sources.includes('export-from-volume');
      const end = await imported(exported).then(differenceOf, (error: Error) => error.message);
      expect(end).toMatch(isServed ? /^$/ : /export-from-volume/);
    });

    it(`${snapshots ? 'offers' : 'has no'} snapshots of a disk`, async () => {
      const name = `${prefix}-snapshot`;
      await cluster.kube.create(volumeSnapshots, aSnapshot(name, root));
      const decided = ({ status }: VolumeSnapshot) => status?.readyToUse === true || status?.error !== undefined;
      const { status } = await until(volumeSnapshots, name, decided);
      expect(status?.readyToUse ?? false).toBe(snapshots);
      expect(status?.error === undefined).toBe(snapshots);
    });

    it('backs its image up once a target is configured, and reports when none is', async () => {
      const annotations = { 'bullion.dev/backup': 'true' };
      await cluster.kube.mergePatch(images, { namespace, name: prefix }, { metadata: { annotations } });
      const { status } = await until(images, prefix, (image) => reasonOf(image, 'MetadataReady') !== undefined);
      expect(reasonOf({ status } as HarvesterImage, 'MetadataReady')).toBe('NoBackupTarget');
      expect(status?.phase).toBe('Imported');
    });

    it('supports no live migration: its volumes are bound to one node', async () => {
      const storageClass = await cluster.kube.get(storageClasses, { name: className });
      expect(claimProfileOf(storageClass).accessModes).toEqual(['ReadWriteOnce']);
    });
  });

  it('restores a disk, and clones it, with plain snapshots', async () => {
    await imported(anImage('rollback', matrix[1]![1], { sourceType: 'download', url }));
    const { status } = await until(images, 'rollback', () => true);
    await dataVolume('vm-disk', {
      source: { pvc: { namespace, name: status?.children?.volume ?? '' } },
      storage: { storageClassName: 'local', volumeMode: 'Block', accessModes: ['ReadWriteOnce'] },
    });
    await cluster.kube.create(volumeSnapshots, aSnapshot('before', 'vm-disk'));
    await until(volumeSnapshots, 'before', (snapshot) => snapshot.status?.readyToUse === true);
    const guest = await open(await diskIn('vm-disk'), 'r+');
    await guest.write(Buffer.alloc(mib, 0xee), 0, mib, 4 * mib);
    await guest.close();
    expect(await differenceOf('vm-disk')).not.toBe('');
    // The machine is stopped: the disk is deleted, and restored under its name.
    await cluster.kube.delete(dataVolumes, { namespace, name: 'vm-disk' });
    await expect
      .poll(() => cluster.kube.get(persistentVolumeClaims, { namespace, name: 'vm-disk' }), { timeout: 120_000 })
      .toBeUndefined();
    await cluster.kube.create(persistentVolumeClaims, aClaim('vm-disk', fromSnapshot('before')));
    await bound('vm-disk');
    expect(await differenceOf('vm-disk')).toBe('');
    await cluster.kube.create(
      persistentVolumeClaims,
      aClaim('twin', { kind: 'PersistentVolumeClaim', name: 'vm-disk' }),
    );
    await bound('twin');
    expect(await differenceOf('twin')).toBe('');
  });
});
