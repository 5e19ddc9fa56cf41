// What kind of volume a storage class can make, where the user did not say. Called when a golden volume is built.
import type { AccessMode, StorageClass, VolumeMode } from '#shared/api/foreign/core.ts';

export interface ClaimProfile {
  readonly volumeMode: VolumeMode;
  readonly accessModes: readonly AccessMode[];
}

/** Drivers that have no block volumes. Every other CSI driver that KubeVirt users run has them. */
const filesystemOnly: readonly string[] = [
  'nfs.csi.k8s.io',
  'smb.csi.k8s.io',
  'file.csi.azure.com',
  'efs.csi.aws.com',
  'rancher.io/local-path',
  'kubevirt.io.hostpath-provisioner',
  'spectrumscale.csi.ibm.com',
];

/** JSON of the form `{"Block":["ReadWriteOnce"]}`, in order of preference: an administrator's word on a class. */
const profileAnnotation = 'cdi.harvesterhci.io/storageProfileVolumeModeAccessModes';

const isFilesystemOnly = (provisioner: string): boolean =>
  filesystemOnly.includes(provisioner) || provisioner.endsWith('cephfs.csi.ceph.com');

const annotatedProfile = (storageClass: StorageClass): ClaimProfile | undefined => {
  try {
    const modes: unknown = JSON.parse(storageClass.metadata.annotations?.[profileAnnotation] ?? 'null');
    const [first] = Object.entries((modes ?? {}) as Record<VolumeMode, readonly AccessMode[]>);
    const isUsable = first !== undefined && (first[0] === 'Block' || first[0] === 'Filesystem');
    return isUsable ? { volumeMode: first[0] as VolumeMode, accessModes: oneOf(first[1]) } : undefined;
  } catch {
    return undefined;
  }
};

/** A golden volume is written once by one pod: the narrowest mode a class offers is enough. */
const oneOf = (modes: readonly AccessMode[]): readonly AccessMode[] =>
  modes.length === 0 || modes.includes('ReadWriteOnce') ? ['ReadWriteOnce'] : modes.slice(0, 1);

/** What to ask of a class; block volumes written by one node where nothing better is known. */
export const claimProfileOf = (storageClass: StorageClass | undefined): ClaimProfile => {
  if (storageClass === undefined) return { volumeMode: 'Block', accessModes: ['ReadWriteOnce'] };
  const volumeMode: VolumeMode = isFilesystemOnly(storageClass.provisioner) ? 'Filesystem' : 'Block';
  return annotatedProfile(storageClass) ?? { volumeMode, accessModes: ['ReadWriteOnce'] };
};

const defaultMarks = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

/** Preferred for the disks of virtual machines, above the cluster's default. */
const virtDefaultMark = 'storageclass.kubevirt.io/is-default-virt-class';

const isMarked = (object: StorageClass, mark: string): boolean => object.metadata.annotations?.[mark] === 'true';

/** The class used where none is named: newest of those marked, as Kubernetes picks it. */
export const defaultClassOf = (classes: readonly StorageClass[]): StorageClass | undefined => {
  const forVirt = classes.filter((candidate) => isMarked(candidate, virtDefaultMark));
  const marked = classes.filter((candidate) => defaultMarks.some((mark) => isMarked(candidate, mark)));
  const candidates = forVirt.length > 0 ? forVirt : marked;
  return [...candidates].sort(newestFirst)[0];
};

const newestFirst = (a: StorageClass, b: StorageClass): number =>
  (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? '') ||
  a.metadata.name.localeCompare(b.metadata.name);
