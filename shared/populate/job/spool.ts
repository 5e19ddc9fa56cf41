// Where an upload is kept until it is a disk: a claim of its own, so that it goes on when the pod that took it is gone, or its node.
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import { childMetadata } from '#shared/api/owner.ts';
import { formatQuantity } from '#shared/api/quantity.ts';
import { fileVolumeBytesFor } from '#shared/populate/population.ts';
import { requestedBytes } from '#shared/populate/population.ts';

/** Where the pod finds it. */
export const spoolPath = '/spool';

export const spoolName = ({ uid }: Pick<ObjectRef, 'uid'>): string => `spool-${uid}`;

/** For its pod. */
export const mountsOfSpool = (owner: Pick<ObjectRef, 'uid'>) => ({
  volumes: [{ name: 'spool', persistentVolumeClaim: { claimName: spoolName(owner) } }],
  mounts: [{ name: 'spool', mountPath: spoolPath }],
});

/**
 * A disk image is hardly larger than its disk: the tables of a qcow2 file take 1/6400 of it. A sixty-fourth more lets those of other formats
 * in as well, and what is announced to be larger gets what it needs.
 */
const bytesFor = (target: PersistentVolumeClaim, fileBytes: number): number => {
  const disk = requestedBytes(target);
  return Math.max(disk + Math.ceil(disk / 64), fileBytes);
};

export interface SpoolRequest {
  /** The claim that is filled from it: it lies where that does. */
  readonly target: PersistentVolumeClaim;
  /** Bytes of the file, where they are known; 0: they are not. */
  readonly fileBytes: number;
  /** Share that a file system keeps for itself. */
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
