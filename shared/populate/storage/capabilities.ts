// Capabilities of storage drivers, by the name of their provisioner: one row each, with a function if parameters of the class decide. Facts of
// the drivers' own documentation, as shipped with CDI. Pure; called by profile.ts and storage-profile.ts.
import type { AccessMode, StorageClass, VolumeMode } from '#shared/api/foreign/core.ts';
import type { CloneStrategy } from '#shared/populate/clone/strategy.ts';

export interface ClaimSet {
  readonly accessModes: readonly AccessMode[];
  readonly volumeMode: VolumeMode;
}

export interface Capabilities {
  /** In order of preference; empty: unknown. */
  readonly sets: readonly ClaimSet[];
  /** Default: by snapshot, if there is a snapshot class. */
  readonly clone?: CloneStrategy;
  /** Best format for golden images. */
  readonly format?: 'snapshot' | 'pvc';
  /** Smallest volume of the driver. */
  readonly least?: string;
  /** Golden images are written by one node, even if the class supports other access modes. */
  readonly hasSingleWriter?: true;
  /** Parameters of the snapshot class for golden images. */
  readonly goldenSnapshots?: Readonly<Record<string, string>>;
}

const set =
  (volumeMode: VolumeMode) =>
  (...accessModes: readonly AccessMode[]): readonly ClaimSet[] =>
    accessModes.map((mode) => ({ accessModes: [mode], volumeMode }));
const block = set('Block');
const files = set('Filesystem');

const ownFiles = files('ReadWriteOnce');
const ownBlock = block('ReadWriteOnce');
const ownBoth = [...ownBlock, ...ownFiles];
const sharedBlock = [...block('ReadWriteMany'), ...ownBoth];
const sharedFiles = files('ReadWriteMany', 'ReadWriteOnce');
const allFiles = files('ReadWriteMany', 'ReadWriteOnce', 'ReadOnlyMany');
const readBlock = [...sharedBlock, ...block('ReadOnlyMany')];
const allButSharedFiles = [...readBlock, ...files('ReadOnlyMany')];

type Parameters = Readonly<Record<string, string>>;
/** `undefined`: nothing is known of the provisioner with these parameters. */
type Row = Capabilities | ((parameters: Parameters) => Capabilities | undefined);

/** Parameters that request NFS change the capabilities of a driver of block devices. */
const unlessNfs =
  (isNfs: (parameters: Parameters) => boolean, usual: Capabilities, nfs: Capabilities): Row =>
  (parameters) =>
    isNfs(parameters) ? nfs : usual;

const fileSystemOf = (parameters: Parameters): string => (parameters['csi.storage.k8s.io/fstype'] ?? '').toLowerCase();
const isNfs = (parameters: Parameters): boolean => fileSystemOf(parameters) === 'nfs';
const isVersion3 = ({ sharedv4_mount_options: options = '' }: Parameters): boolean =>
  ['vers=3.0', 'nolock'].every((option) => options.split(',').includes(option));

const longhorn: Row = ({ migratable, nfsOptions = '', fsType = '' }) => {
  if (migratable === 'true') return { sets: block('ReadWriteMany', 'ReadWriteOnce') };
  if (nfsOptions !== '') return { sets: sharedFiles };
  return { sets: fsType === '' ? ownBlock : ownFiles };
};

const ebs: Row = ({ type = '' }) => ({
  sets: type === 'io2' ? sharedBlock : ownBlock,
  ...(['io1', 'io2'].includes(type) ? { least: '4Gi' } : {}),
  ...(['gp2', 'gp3'].includes(type) ? { least: '1Gi' } : {}),
});

const gkeDisk: Row = ({ type = '' }) => {
  const isHyper = ['hyperdisk-balanced', 'hyperdisk-balanced-high-availability'].includes(type);
  return {
    ...(isHyper ? { sets: sharedBlock, least: '4Gi' } : { sets: ownBoth }),
    clone: 'snapshot',
    format: 'snapshot',
    hasSingleWriter: true,
    // Google restores other snapshots of one disk only six times an hour.
    goldenSnapshots: { 'snapshot-type': 'images' },
  };
};

const trident: Row = ({ backendType = '', selector = '' }) => {
  const snapshots = { clone: 'snapshot', format: 'snapshot' } as const;
  if (backendType.startsWith('ontap-san')) return { sets: block('ReadWriteMany'), ...snapshots };
  if (backendType.startsWith('ontap-nas')) return { sets: sharedFiles, ...snapshots };
  const isFlex = selector.split(/\s*[;,]\s*/).includes('performance=flex');
  return backendType === 'google-cloud-netapp-volumes' && isFlex
    ? { sets: sharedFiles, ...snapshots, least: '1Gi' }
    : undefined;
};

const portworx: Row = (parameters) => {
  const { backend } = parameters;
  const clone = 'csi-clone';
  if (backend === 'pure_block') return { sets: sharedBlock, clone };
  if (backend === 'pure_fa_file' || (backend === undefined && isVersion3(parameters)))
    return { sets: sharedFiles, clone };
  return { sets: portworxSets, clone };
};
const portworxSets = ['ReadWriteMany' as const, 'ReadWriteOnce' as const].flatMap((mode) => [
  ...block(mode),
  ...files(mode),
]);

const infinibox: Row = ({ storage_protocol: protocol = '' }) => {
  if (['iscsi', 'fc', 'nvme'].includes(protocol)) return { sets: sharedBlock, clone: 'csi-clone' };
  return ['nfs', 'nfs_treeq'].includes(protocol) ? { sets: sharedFiles, clone: 'csi-clone' } : undefined;
};

const synology: Row = ({ protocol = '' }) => {
  const usual = { clone: 'csi-clone', least: '1Gi' } as const;
  if (['iscsi', ''].includes(protocol)) return { sets: sharedBlock, ...usual };
  return ['smb', 'nfs', 'nfs_treeq'].includes(protocol) ? { sets: sharedFiles, ...usual } : undefined;
};

const leastOfIbm: Readonly<Record<string, { readonly least: string }>> = {
  rfs: { least: '1Gi' },
  dp2: { least: '10Gi' },
};
const ibmFiles: Row = ({ profile = '', vmState }) => ({
  sets: leastOfIbm[profile] !== undefined && vmState === 'true' ? ownFiles : sharedFiles,
  clone: 'snapshot',
  format: 'snapshot',
  ...leastOfIbm[profile],
});

const clonedBlock = { sets: sharedBlock, clone: 'csi-clone' } as const satisfies Capabilities;
const clonedFiles = { sets: sharedFiles, clone: 'csi-clone' } as const satisfies Capabilities;
const allNfs = { sets: allFiles } as const satisfies Capabilities;

/** Names of provisioners, or their suffixes after a dot: Rook's start with the namespace of its operator. */
const rows: readonly (readonly [name: string, row: Row])[] = [
  ['local.bullion.dev', { sets: ownBoth }],
  ['rancher.io/local-path', { sets: ownFiles }],
  [
    'kubevirt.io.hostpath-provisioner',
    ({ overlayCSI }) => ({ sets: overlayCSI === undefined ? ownFiles : files('ReadWriteMany') }),
  ],
  ['kubevirt.io/hostpath-provisioner', { sets: ownFiles }],
  ['k8s.io/minikube-hostpath', { sets: ownFiles }],
  ['nfs.csi.k8s.io', { sets: files('ReadWriteMany') }],
  ['k8s-sigs.io/nfs-subdir-external-provisioner', { sets: files('ReadWriteMany') }],
  ['smb.csi.k8s.io', { sets: files('ReadWriteMany') }],
  ['kubernetes.io/rbd', { sets: sharedBlock }],
  ['openshift-storage.rbd.csi.ceph.com', { ...clonedBlock, format: 'snapshot' }],
  ['rook-ceph.rbd.csi.ceph.com', { ...clonedBlock, format: 'snapshot' }],
  ['rbd.csi.ceph.com', clonedBlock],
  ['cephfs.csi.ceph.com', clonedFiles],
  ['driver.longhorn.io', longhorn],
  ['linstor.csi.linbit.com', { sets: allButSharedFiles }],
  [
    'csi-unity.dellemc.com',
    unlessNfs(({ protocol = '' }) => protocol.toLowerCase() === 'nfs', { sets: allButSharedFiles }, allNfs),
  ],
  ['csi-vxflexos.dellemc.com', unlessNfs(isNfs, { sets: allButSharedFiles, clone: 'csi-clone' }, allNfs)],
  ['csi-isilon.dellemc.com', { sets: allFiles, clone: 'csi-clone' }],
  ['csi-powermax.dellemc.com', unlessNfs(isNfs, { sets: readBlock, clone: 'csi-clone' }, allNfs)],
  ['csi-powerstore.dellemc.com', unlessNfs(isNfs, { sets: readBlock, clone: 'copy' }, allNfs)],
  ['kubernetes.io/storageos', { sets: ownFiles }],
  ['storageos', { sets: ownFiles }],
  ['kubernetes.io/aws-ebs', { sets: ownBlock }],
  ['ebs.csi.aws.com', ebs],
  ['efs.csi.aws.com', { sets: sharedFiles }],
  ['kubernetes.io/azure-disk', { sets: ownBlock }],
  ['disk.csi.azure.com', { sets: ownBlock }],
  ['kubernetes.io/azure-file', { sets: files('ReadWriteMany') }],
  ['file.csi.azure.com', { sets: files('ReadWriteMany') }],
  ['kubernetes.io/gce-pd', { sets: ownBoth }],
  ['pd.csi.storage.gke.io', gkeDisk],
  ['hspc.csi.hitachi.com', { ...clonedBlock, least: '1Gi' }],
  ['xspc.csi.hpe.com', { sets: [], least: '1Gi' }],
  ['csi.hpe.com', clonedBlock],
  ['spectrumscale.csi.ibm.com', clonedFiles],
  ['block.csi.ibm.com', clonedBlock],
  ['vpc.block.csi.ibm.io', { sets: ownBoth, clone: 'copy' }],
  ['vpc.file.csi.ibm.io', ibmFiles],
  ['kubernetes.io/portworx-volume', unlessNfs(isVersion3, { sets: portworxSets }, { sets: sharedFiles })],
  ['pxd.portworx.com', portworx],
  ['csi.trident.netapp.io', trident],
  ['topolvm.cybozu.com', { sets: ownBoth, clone: 'copy' }],
  ['topolvm.io', { sets: ownBoth, clone: 'copy' }],
  ['cinder.csi.openstack.org', { sets: ownBoth }],
  ['manila.csi.openstack.org', { sets: files('ReadWriteMany') }],
  ['csi.ovirt.org', { sets: ownBoth }],
  ['infinibox-csi-driver', infinibox],
  [
    'csi.vsphere.vmware.com',
    unlessNfs(
      (parameters) => fileSystemOf(parameters).includes('nfs'),
      { sets: ownBoth },
      { sets: [...files('ReadWriteMany'), ...ownBoth] },
    ),
  ],
  ['csi.huawei.com', unlessNfs(({ protocol }) => protocol === 'nfs', { sets: allButSharedFiles }, allNfs)],
  ['kubesan.gitlab.io', { sets: [...block('ReadWriteMany', 'ReadOnlyMany'), ...ownBoth], clone: 'csi-clone' }],
  ['blockvolume.csi.oraclecloud.com', clonedBlock],
  ['csi.san.synology.com', synology],
  ['directpv-min-io', { sets: ownFiles }],
];

export type Recognition = 'RecognizedProvisioner' | 'UnrecognizedProvisioner' | 'UnrecognizedStorageClassParameters';

const rowOf = ({ provisioner }: StorageClass): Row | undefined =>
  rows.find(([name]) => provisioner === name || provisioner.endsWith(`.${name}`))?.[1];

/** `undefined`: unknown provisioner, or unknown parameters. */
export const capabilitiesOf = (storageClass: StorageClass): Capabilities | undefined => {
  const row = rowOf(storageClass);
  return typeof row === 'function' ? row(storageClass.parameters ?? {}) : row;
};

/** Whether the volumes of the class are known, and if not, why. */
export const recognitionOf = (storageClass: StorageClass): Recognition => {
  const known = capabilitiesOf(storageClass);
  if (known !== undefined && known.sets.length > 0) return 'RecognizedProvisioner';
  return known === undefined && rowOf(storageClass) !== undefined
    ? 'UnrecognizedStorageClassParameters'
    : 'UnrecognizedProvisioner';
};
