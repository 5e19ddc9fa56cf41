// What storage drivers can, by the name of their provisioner: one line each, in order of preference. Facts of the drivers' own documentation,
// as CDI ships them. Pure; called by profile.ts.
import type { AccessMode, StorageClass, VolumeMode } from '#shared/api/foreign/core.ts';
import type { CloneStrategy } from '#shared/populate/clone.ts';

export interface ClaimSet {
  readonly accessModes: readonly AccessMode[];
  readonly volumeMode: VolumeMode;
}

export interface Capabilities {
  readonly sets: readonly ClaimSet[];
  /** Left out: snapshots where there is a class for them. */
  readonly clone?: CloneStrategy;
  /** What golden images are best kept as. */
  readonly format?: 'snapshot' | 'pvc';
  /** Bytes: the driver makes no smaller volume. */
  readonly leastBytes?: number;
}

const gib = 2 ** 30;
const set =
  (volumeMode: VolumeMode) =>
  (...accessModes: readonly AccessMode[]): ClaimSet => ({ accessModes, volumeMode });
const block = set('Block');
const files = set('Filesystem');

const sharedBlock = [block('ReadWriteMany'), block('ReadWriteOnce'), files('ReadWriteOnce')] as const;
const ownBlock = [block('ReadWriteOnce'), files('ReadWriteOnce')] as const;
const sharedFiles = [files('ReadWriteMany'), files('ReadWriteOnce')] as const;
const readersToo = [...sharedBlock, block('ReadOnlyMany'), files('ReadOnlyMany')] as const;

type Parameters = Readonly<Record<string, string>>;
type Line = Capabilities | ((parameters: Parameters) => Capabilities);

const longhorn = (parameters: Parameters): Capabilities => {
  if (parameters['migratable'] === 'true') return { sets: [block('ReadWriteMany'), block('ReadWriteOnce')] };
  if (parameters['nfsOptions'] !== undefined) return { sets: sharedFiles };
  if (parameters['fsType'] !== undefined) return { sets: [files('ReadWriteOnce')] };
  return { sets: [block('ReadWriteOnce')] };
};

const ebs = ({ type = '' }: Parameters): Capabilities => ({
  sets: type === 'io2' ? [block('ReadWriteMany'), ...ownBlock] : [block('ReadWriteOnce')],
  leastBytes: type.startsWith('io') ? 4 * gib : gib,
});

const gkeDisk = ({ type = '' }: Parameters): Capabilities => ({
  sets: type.startsWith('hyperdisk') ? sharedBlock : ownBlock,
  clone: 'snapshot',
  format: 'snapshot',
  ...(type.startsWith('hyperdisk') ? { leastBytes: 4 * gib } : {}),
});

const trident = ({ backendType = '', performance }: Parameters): Capabilities | undefined => {
  const snapshots = { clone: 'snapshot', format: 'snapshot' } as const;
  if (backendType.startsWith('ontap-san')) return { sets: [block('ReadWriteMany')], ...snapshots };
  if (backendType.startsWith('ontap-nas')) return { sets: sharedFiles, ...snapshots };
  if (backendType.startsWith('google-cloud-netapp') && performance === 'flex')
    return { sets: sharedFiles, ...snapshots, leastBytes: gib };
  return undefined;
};

const vsphere = (parameters: Parameters): Capabilities => ({
  sets:
    parameters['csi.storage.k8s.io/fstype']?.startsWith('nfs') === true
      ? [files('ReadWriteMany'), ...ownBlock]
      : ownBlock,
});

/** Provisioners as they are called, or as their names end. */
const lines: readonly (readonly [name: string, line: Line | ((parameters: Parameters) => Capabilities | undefined)])[] =
  [
    ['local.bullion.dev', { sets: ownBlock }],
    ['openshift-storage.rbd.csi.ceph.com', { sets: sharedBlock, clone: 'csi-clone', format: 'snapshot' }],
    ['rook-ceph.rbd.csi.ceph.com', { sets: sharedBlock, clone: 'csi-clone', format: 'snapshot' }],
    ['rbd.csi.ceph.com', { sets: sharedBlock, clone: 'csi-clone' }],
    ['cephfs.csi.ceph.com', { sets: sharedFiles, clone: 'csi-clone' }],
    ['driver.longhorn.io', longhorn],
    ['ebs.csi.aws.com', ebs],
    ['pd.csi.storage.gke.io', gkeDisk],
    ['disk.csi.azure.com', { sets: [block('ReadWriteOnce')] }],
    ['file.csi.azure.com', { sets: [files('ReadWriteMany')] }],
    ['efs.csi.aws.com', { sets: [files('ReadWriteMany')] }],
    ['csi.trident.netapp.io', trident],
    ['linstor.csi.linbit.com', { sets: readersToo }],
    ['csi.huawei.com', { sets: readersToo }],
    ['csi-vxflexos.dellemc.com', { sets: readersToo, clone: 'csi-clone' }],
    ['csi-powerstore.dellemc.com', { sets: sharedBlock, clone: 'copy' }],
    ['vpc.block.csi.ibm.io', { sets: ownBlock, clone: 'copy' }],
    ['vpc.file.csi.ibm.io', { sets: sharedFiles, clone: 'snapshot', format: 'snapshot' }],
    ['topolvm.io', { sets: ownBlock, clone: 'copy' }],
    ['kubevirt.io.hostpath-provisioner', { sets: [files('ReadWriteOnce')] }],
    ['rancher.io/local-path', { sets: [files('ReadWriteOnce')] }],
    ['nfs.csi.k8s.io', { sets: [files('ReadWriteMany')] }],
    ['smb.csi.k8s.io', { sets: [files('ReadWriteMany')] }],
    ['csi.vsphere.vmware.com', vsphere],
    ['spectrumscale.csi.ibm.com', { sets: sharedFiles, clone: 'csi-clone' }],
    ['block.csi.ibm.com', { sets: sharedBlock, clone: 'csi-clone' }],
    ['csi.hpe.com', { sets: sharedBlock, clone: 'csi-clone' }],
    ['pxd.portworx.com', { sets: sharedBlock, clone: 'csi-clone' }],
    ['infinibox-csi-driver', { sets: sharedBlock, clone: 'csi-clone' }],
    ['kubesan.gitlab.io', { sets: sharedBlock, clone: 'csi-clone' }],
    ['blockvolume.csi.oraclecloud.com', { sets: sharedBlock, clone: 'csi-clone' }],
    ['hspc.csi.hitachi.com', { sets: sharedBlock, clone: 'csi-clone', leastBytes: gib }],
  ];

/** `undefined`: nothing is known of this provisioner, or not with these parameters. */
export const capabilitiesOf = ({ provisioner, parameters = {} }: StorageClass): Capabilities | undefined => {
  const line = lines.find(([name]) => provisioner === name || provisioner.endsWith(`.${name}`))?.[1];
  return typeof line === 'function' ? line(parameters) : line;
};
