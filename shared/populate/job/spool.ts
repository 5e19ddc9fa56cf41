// Stores an upload until it is a disk, in a claim of its own, so that the upload resumes when its pod or node is gone.
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { childMetadata, type ObjectRef } from '#shared/api/object.ts';
import { formatQuantity } from '#shared/api/quantity.ts';
import { fileVolumeBytesFor } from '#shared/populate/population.ts';
import { requestedBytes } from '#shared/populate/population.ts';

/** Mount path in the pod. */
export const spoolPath = '/spool';

export const spoolName = ({ uid }: Pick<ObjectRef, 'uid'>): string => `spool-${uid}`;

/** Mounts for the pod. */
export const mountsOfSpool = (owner: Pick<ObjectRef, 'uid'>) => ({
  volumes: [{ name: 'spool', persistentVolumeClaim: { claimName: spoolName(owner) } }],
  mounts: [{ name: 'spool', mountPath: spoolPath }],
});

/**
 * A disk image is hardly larger than its disk: the tables of a qcow2 file take 1/6400 of it. A sixty-fourth more is enough for other formats
 * too; a file that is announced to be larger gets the announced size.
 */
const bytesFor = (target: PersistentVolumeClaim, fileBytes: number): number => {
  const disk = requestedBytes(target);
  return Math.max(disk + Math.ceil(disk / 64), fileBytes);
};

export interface SpoolRequest {
  /** The claim that is filled from it: both are on the same storage. */
  readonly target: PersistentVolumeClaim;
  /** Size of the file in bytes; 0: unknown. */
  readonly fileBytes: number;
  /** Share that the file system uses for itself. */
  readonly overhead: number;
}

export const buildSpool = (owner: ObjectRef, { target, fileBytes, overhead }: SpoolRequest): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: childMetadata(owner, 'spool', spoolName(owner)),
  spec: {
    accessModes: ['ReadWriteOnce'],
    volumeMode: 'Filesystem',
    ...(target.spec.storageClassName === undefined ? {} : { storageClassName: target.spec.storageClassName }),
    resources: {
      requests: { storage: formatQuantity(fileVolumeBytesFor(bytesFor(target, fileBytes), overhead)) },
    },
  },
});
