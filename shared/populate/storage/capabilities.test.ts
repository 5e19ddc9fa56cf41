// The known capabilities of drivers, compared with those in CDI for the same classes, and with the other fields of its StorageProfiles.
import { describe, expect, it } from 'vitest';
import type { VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import { capabilitiesOf, recognitionOf } from '#shared/populate/storage/capabilities.ts';
import { describeClass, goldenMarksOf } from '#shared/populate/storage/storage-profile.ts';
import { aSnapshotClass, aStorageClass } from '#test/support/builders.ts';

type Row = readonly [
  provisioner: string,
  parameters: Readonly<Record<string, string>>,
  /** In order of preference: access mode in short, and `b` for Block, `f` for Filesystem. */
  sets: string,
  /** Where there is a snapshot class. */
  clone: 'copy' | 'snapshot' | 'csi-clone',
  format?: 'snapshot' | undefined,
  least?: string,
];

const nfs = { 'csi.storage.k8s.io/fstype': 'nfs' };
const everything = 'rwx-b rwo-b rwo-f rox-b rox-f';
const sharedBlock = 'rwx-b rwo-b rwo-f';
const sharedFiles = 'rwx-f rwo-f';
const allFiles = 'rwx-f rwo-f rox-f';
const ownBoth = 'rwo-b rwo-f';
const portworx = 'rwx-b rwx-f rwo-b rwo-f';
const nfs3 = { sharedv4_mount_options: 'soft,vers=3.0,nolock' };

/** CDI 1.66. */
const rows: readonly Row[] = [
  ['kubevirt.io.hostpath-provisioner', {}, 'rwo-f', 'snapshot'],
  ['kubevirt.io.hostpath-provisioner', { overlayCSI: '' }, 'rwx-f', 'snapshot'],
  ['kubevirt.io/hostpath-provisioner', {}, 'rwo-f', 'snapshot'],
  ['k8s.io/minikube-hostpath', {}, 'rwo-f', 'snapshot'],
  ['nfs.csi.k8s.io', {}, 'rwx-f', 'snapshot'],
  ['k8s-sigs.io/nfs-subdir-external-provisioner', {}, 'rwx-f', 'snapshot'],
  ['kubernetes.io/rbd', {}, sharedBlock, 'snapshot'],
  ['rbd.csi.ceph.com', {}, sharedBlock, 'csi-clone'],
  ['rook-ceph.rbd.csi.ceph.com', {}, sharedBlock, 'csi-clone', 'snapshot'],
  ['openshift-storage.rbd.csi.ceph.com', {}, sharedBlock, 'csi-clone', 'snapshot'],
  ['cephfs.csi.ceph.com', {}, sharedFiles, 'csi-clone'],
  ['rook-ceph.cephfs.csi.ceph.com', {}, sharedFiles, 'csi-clone'],
  ['openshift-storage.cephfs.csi.ceph.com', {}, sharedFiles, 'csi-clone'],
  ['linstor.csi.linbit.com', {}, everything, 'snapshot'],
  ['csi-unity.dellemc.com', { protocol: 'iSCSI' }, everything, 'snapshot'],
  ['csi-unity.dellemc.com', { protocol: 'NFS' }, allFiles, 'snapshot'],
  ['csi-vxflexos.dellemc.com', {}, everything, 'csi-clone'],
  ['csi-vxflexos.dellemc.com', nfs, allFiles, 'snapshot'],
  ['csi-isilon.dellemc.com', {}, allFiles, 'csi-clone'],
  ['csi-powermax.dellemc.com', {}, 'rwx-b rwo-b rwo-f rox-b', 'csi-clone'],
  ['csi-powermax.dellemc.com', nfs, allFiles, 'snapshot'],
  ['csi-powerstore.dellemc.com', { 'csi.storage.k8s.io/fstype': 'ext4' }, 'rwx-b rwo-b rwo-f rox-b', 'copy'],
  ['csi-powerstore.dellemc.com', { 'csi.storage.k8s.io/fstype': 'NFS' }, allFiles, 'snapshot'],
  ['kubernetes.io/storageos', {}, 'rwo-f', 'snapshot'],
  ['storageos', {}, 'rwo-f', 'snapshot'],
  ['kubernetes.io/aws-ebs', {}, 'rwo-b', 'snapshot'],
  ['ebs.csi.aws.com', {}, 'rwo-b', 'snapshot'],
  ['ebs.csi.aws.com', { type: 'io1' }, 'rwo-b', 'snapshot', undefined, '4Gi'],
  ['ebs.csi.aws.com', { type: 'io2' }, sharedBlock, 'snapshot', undefined, '4Gi'],
  ['ebs.csi.aws.com', { type: 'gp2' }, 'rwo-b', 'snapshot', undefined, '1Gi'],
  ['ebs.csi.aws.com', { type: 'gp3' }, 'rwo-b', 'snapshot', undefined, '1Gi'],
  ['efs.csi.aws.com', {}, sharedFiles, 'snapshot'],
  ['kubernetes.io/azure-disk', {}, 'rwo-b', 'snapshot'],
  ['disk.csi.azure.com', {}, 'rwo-b', 'snapshot'],
  ['kubernetes.io/azure-file', {}, 'rwx-f', 'snapshot'],
  ['file.csi.azure.com', {}, 'rwx-f', 'snapshot'],
  ['kubernetes.io/gce-pd', {}, ownBoth, 'snapshot'],
  ['pd.csi.storage.gke.io', {}, ownBoth, 'snapshot', 'snapshot'],
  ['pd.csi.storage.gke.io', { type: 'hyperdisk-throughput' }, ownBoth, 'snapshot', 'snapshot'],
  ['pd.csi.storage.gke.io', { type: 'hyperdisk-balanced' }, sharedBlock, 'snapshot', 'snapshot', '4Gi'],
  [
    'pd.csi.storage.gke.io',
    { type: 'hyperdisk-balanced-high-availability' },
    sharedBlock,
    'snapshot',
    'snapshot',
    '4Gi',
  ],
  ['hspc.csi.hitachi.com', {}, sharedBlock, 'csi-clone', undefined, '1Gi'],
  ['xspc.csi.hpe.com', {}, '', 'snapshot', undefined, '1Gi'],
  ['csi.hpe.com', {}, sharedBlock, 'csi-clone'],
  ['spectrumscale.csi.ibm.com', {}, sharedFiles, 'csi-clone'],
  ['block.csi.ibm.com', {}, sharedBlock, 'csi-clone'],
  ['vpc.block.csi.ibm.io', {}, ownBoth, 'copy'],
  ['vpc.file.csi.ibm.io', {}, sharedFiles, 'snapshot', 'snapshot'],
  ['vpc.file.csi.ibm.io', { vmState: 'true' }, sharedFiles, 'snapshot', 'snapshot'],
  ['vpc.file.csi.ibm.io', { profile: 'dp2' }, sharedFiles, 'snapshot', 'snapshot', '10Gi'],
  ['vpc.file.csi.ibm.io', { profile: 'dp2', vmState: 'true' }, 'rwo-f', 'snapshot', 'snapshot', '10Gi'],
  ['vpc.file.csi.ibm.io', { profile: 'rfs' }, sharedFiles, 'snapshot', 'snapshot', '1Gi'],
  ['vpc.file.csi.ibm.io', { profile: 'rfs', vmState: 'true' }, 'rwo-f', 'snapshot', 'snapshot', '1Gi'],
  ['kubernetes.io/portworx-volume', {}, portworx, 'snapshot'],
  ['kubernetes.io/portworx-volume', nfs3, sharedFiles, 'snapshot'],
  ['pxd.portworx.com', {}, portworx, 'csi-clone'],
  ['pxd.portworx.com', { sharedv4_mount_options: 'vers=4.0,nolock' }, portworx, 'csi-clone'],
  ['pxd.portworx.com', nfs3, sharedFiles, 'csi-clone'],
  ['pxd.portworx.com', { backend: 'pure_block' }, sharedBlock, 'csi-clone'],
  ['pxd.portworx.com', { backend: 'pure_fa_file' }, sharedFiles, 'csi-clone'],
  ['pxd.portworx.com', { backend: 'other', ...nfs3 }, portworx, 'csi-clone'],
  ['csi.trident.netapp.io', { backendType: 'ontap-nas-economy' }, sharedFiles, 'snapshot', 'snapshot'],
  ['csi.trident.netapp.io', { backendType: 'ontap-san' }, 'rwx-b', 'snapshot', 'snapshot'],
  [
    'csi.trident.netapp.io',
    { backendType: 'google-cloud-netapp-volumes', selector: 'zone=a ; performance=flex' },
    sharedFiles,
    'snapshot',
    'snapshot',
    '1Gi',
  ],
  ['topolvm.cybozu.com', {}, ownBoth, 'copy'],
  ['topolvm.io', {}, ownBoth, 'copy'],
  ['cinder.csi.openstack.org', {}, ownBoth, 'snapshot'],
  ['manila.csi.openstack.org', {}, 'rwx-f', 'snapshot'],
  ['csi.ovirt.org', {}, ownBoth, 'snapshot'],
  ['infinibox-csi-driver', { storage_protocol: 'fc' }, sharedBlock, 'csi-clone'],
  ['infinibox-csi-driver', { storage_protocol: 'nvme' }, sharedBlock, 'csi-clone'],
  ['infinibox-csi-driver', { storage_protocol: 'nfs_treeq' }, sharedFiles, 'csi-clone'],
  ['csi.vsphere.vmware.com', {}, ownBoth, 'snapshot'],
  ['csi.vsphere.vmware.com', { 'csi.storage.k8s.io/fstype': 'nfs4' }, 'rwx-f rwo-b rwo-f', 'snapshot'],
  ['csi.huawei.com', {}, everything, 'snapshot'],
  ['csi.huawei.com', { protocol: 'nfs' }, allFiles, 'snapshot'],
  ['kubesan.gitlab.io', {}, 'rwx-b rox-b rwo-b rwo-f', 'csi-clone'],
  ['driver.longhorn.io', {}, 'rwo-b', 'snapshot'],
  ['driver.longhorn.io', { migratable: 'true', fsType: 'ext4' }, 'rwx-b rwo-b', 'snapshot'],
  ['driver.longhorn.io', { nfsOptions: 'vers=4.2' }, sharedFiles, 'snapshot'],
  ['driver.longhorn.io', { fsType: 'ext4', nfsOptions: '' }, 'rwo-f', 'snapshot'],
  ['blockvolume.csi.oraclecloud.com', {}, sharedBlock, 'csi-clone'],
  ['csi.san.synology.com', {}, sharedBlock, 'csi-clone', undefined, '1Gi'],
  ['csi.san.synology.com', { protocol: 'smb' }, sharedFiles, 'csi-clone', undefined, '1Gi'],
  ['csi.san.synology.com', { protocol: 'nfs' }, sharedFiles, 'csi-clone', undefined, '1Gi'],
  ['directpv-min-io', {}, 'rwo-f', 'snapshot'],
];

/** Known only here: the class of a plain test cluster. */
const ours: readonly Row[] = [
  ['rancher.io/local-path', {}, 'rwo-f', 'snapshot'],
  ['smb.csi.k8s.io', {}, 'rwx-f', 'snapshot'],
  ['local.bullion.dev', {}, ownBoth, 'snapshot'],
  ['plain.local.bullion.dev', {}, ownBoth, 'snapshot'],
  ['my-rook.rbd.csi.ceph.com', {}, sharedBlock, 'csi-clone'],
];

const shortOf = { ReadWriteOnce: 'rwo', ReadWriteMany: 'rwx', ReadOnlyMany: 'rox', ReadWriteOncePod: 'rwop' } as const;

it.each([...rows, ...ours].map((row) => ({ row })))(
  '$row',
  ({ row: [driver, parameters, sets, clone, format = 'pvc', least] }) => {
    const storageClass = aStorageClass('a', { provisioner: driver, parameters });
    const { status, isRecognized } = describeClass(
      { storageClass, snapshotClasses: [aSnapshotClass('s', { driver })] },
      {},
    );
    const offered = (status.claimPropertySets ?? []).map(
      ({ accessModes, volumeMode }) =>
        `${accessModes.map((mode) => shortOf[mode]).join('+')}-${volumeMode[0]?.toLowerCase()}`,
    );
    expect(offered.join(' ')).toBe(sets);
    expect(status).toMatchObject({ cloneStrategy: clone, dataImportCronSourceFormat: format });
    expect(capabilitiesOf(storageClass)?.least).toBe(least);
    expect(isRecognized).toBe(sets !== '');
    expect(recognitionOf(storageClass)).toBe(sets === '' ? 'UnrecognizedProvisioner' : 'RecognizedProvisioner');
  },
);

describe('annotations of a profile', () => {
  const gke = 'pd.csi.storage.gke.io';
  const images = (name: string, annotations: Record<string, string> = {}) =>
    aSnapshotClass(name, { driver: gke, parameters: { 'snapshot-type': 'images' }, metadata: { name, annotations } });
  const preferred = { 'snapshot.storage.kubernetes.io/is-default-class': 'true' };
  const [single, golden, least] = [
    'cdi.kubevirt.io/useReadWriteOnceForDataImportCron',
    'cdi.kubevirt.io/snapshotClassForDataImportCron',
    'cdi.kubevirt.io/minimumSupportedPvcSize',
  ];

  it.each<
    [provisioner: string, parameters: Record<string, string>, classes: readonly VolumeSnapshotClass[], marks: object]
  >([
    [gke, {}, [], { [single]: 'true', [golden]: undefined }],
    [gke, {}, [aSnapshotClass('plain', { driver: gke })], { [single]: 'true', [golden]: undefined }],
    [gke, {}, [images('b'), images('a')], { [single]: 'true', [golden]: 'a' }],
    [
      gke,
      { type: 'hyperdisk-balanced' },
      [images('a'), images('b', preferred)],
      { [single]: 'true', [golden]: 'b', [least]: '4Gi' },
    ],
    ['ebs.csi.aws.com', { type: 'gp3' }, [images('a')], { [least]: '1Gi' }],
    ['nfs.csi.k8s.io', {}, [], {}],
    ['new.example', {}, [], {}],
  ])('of %s %o describe what golden images need', (provisioner, parameters, snapshotClasses, marks) => {
    const storageClass = aStorageClass('a', { provisioner, parameters });
    expect(goldenMarksOf({ storageClass, snapshotClasses })).toEqual(marks);
  });
});
