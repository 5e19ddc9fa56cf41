// Where an export Job writes to: what its worker is given, and what is mounted into its pod. Called by transfer-job.ts.
import { type Source, mountsOfSource, toTransferSource } from '#shared/populate/source.ts';
import { type JobContext, type SourceMounts, noMounts } from '#shared/populate/sources/row.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { ExportRequest, BackupRequest } from '#shared/transfer/spec.ts';
import { exportMounts } from '#shared/populate/sources/mounted.ts';

/** A file `disk.img` in a claim of the owner's namespace, that of a file system. */
export interface ClaimTarget {
  readonly type: 'claim';
  readonly claimName: string;
}

/** What `export` makes, and what `abort` and `discard` remove. */
export interface JobExport {
  /** Nobody else writes to this object while the Job runs. */
  readonly object: Source<'object' | 's3'> | ClaimTarget;
  readonly form: ExportRequest['form'];
  /** Also take the sha256 of the guest's bytes; costs a second for each 1.4 GB of the disk. Objects only. */
  readonly guestDigest?: boolean | undefined;
}

/** Where exports to a claim are found, here and by whoever fetches them. */
export const exportPath = '/export';
export const exportFile = 'disk.img';

export const toExportRequest = (
  { object, form, guestDigest = false }: JobExport,
  context: JobContext,
): ExportRequest => {
  if (object.type === 'claim') return { form, path: `${exportPath}/${exportFile}`, guestDigest: false };
  const given = toTransferSource(object, context);
  if (given.type !== 's3') throw new InvalidInput('an export goes to an object store');
  const { type: _, ...place } = given;
  return { form, object: place, guestDigest };
};

/** Its credentials, as those of a source, or the claim. */
export const mountsOfExport = (request: JobExport | undefined, context: JobContext): SourceMounts => {
  if (request === undefined) return noMounts;
  const { object } = request;
  if (object.type !== 'claim') return mountsOfSource(object, context);
  return {
    volumes: [{ name: 'export', persistentVolumeClaim: { claimName: object.claimName } }],
    mounts: [{ name: 'export', mountPath: exportPath }],
    devices: [],
  };
};

// Where a backup Job keeps what it reads: what its worker is given, and what is mounted into its pod.

export interface JobBackup {
  /** Its key is what keys begin with, and ends in a slash. */
  readonly into: Source<'s3' | 'nfs'>;
}

export const toBackupRequest = ({ into }: JobBackup, context: JobContext): BackupRequest => {
  const given = toTransferSource(into, context);
  if (given.type !== 's3' && given.type !== 'folder') throw new InvalidInput('a backup goes to a store or a folder');
  return { into: given };
};

/** Credentials as those of a source; an NFS export is written to. */
export const mountsOfBackup = (request: JobBackup | undefined, context: JobContext): SourceMounts => {
  if (request === undefined) return noMounts;
  return request.into.type === 'nfs' ? exportMounts(request.into, false) : mountsOfSource(request.into, context);
};
