// Sources that are mounted into the Job: another claim, a file of an NFS export.
import type { VolumeMode } from '#shared/api/foreign/core.ts';
import { type JobRow, type SourceMounts, downloading } from '#shared/populate/sources/row.ts';

const devicePath = '/dev/bullion-source';
const mountPath = '/source';
const exportPath = '/source-nfs';

/** Another claim of the same namespace, mounted read-only. */
export interface MountedClaim {
  readonly claimName: string;
  readonly volumeMode: VolumeMode;
  /** Its files are requested, not the disk that is one of them. */
  readonly holdsFiles?: boolean;
}

/** A file of an NFS export, which the pod mounts. */
export interface NfsFile {
  readonly server: string;
  readonly path: string;
  /** Path of the file in the export. */
  readonly key: string;
}

const pathIn = ({ volumeMode, holdsFiles }: MountedClaim): string => {
  if (volumeMode === 'Block') return devicePath;
  return holdsFiles === true ? mountPath : `${mountPath}/disk.img`;
};

const mounted = { takes: [], isServer: false, isFile: false, arrives: 'fetched', moving: downloading } as const;

export const claim: JobRow<MountedClaim> = {
  ...mounted,
  name: 'another claim of the same namespace',
  spec: (source) => ({ type: 'volume', path: pathIn(source) }),
  mounts: ({ claimName, volumeMode }) => ({
    volumes: [{ name: 'source', persistentVolumeClaim: { claimName, readOnly: true } }],
    mounts: volumeMode === 'Block' ? [] : [{ name: 'source', mountPath, readOnly: true }],
    devices: volumeMode === 'Block' ? [{ name: 'source', devicePath }] : [],
  }),
};

/** An NFS export as a volume of the pod. */
export const exportMounts = ({ server, path }: NfsFile, readOnly: boolean): SourceMounts => ({
  volumes: [{ name: 'source-nfs', nfs: { server, path, readOnly } }],
  mounts: [{ name: 'source-nfs', mountPath: exportPath, readOnly }],
  devices: [],
});

export const nfs: JobRow<NfsFile> = {
  ...mounted,
  name: 'a file of an NFS export',
  spec: ({ key }) => ({ type: 'folder', dir: exportPath, key }),
  mounts: (source) => exportMounts(source, true),
};
