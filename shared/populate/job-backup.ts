// Where a backup Job keeps what it reads: what its worker is told, and what is mounted into its pod. Called by transfer-job.ts.
import { type Source, mountsOfSource, toTransferSource } from '#shared/populate/source.ts';
import { exportMounts } from '#shared/populate/sources/mounted.ts';
import { type JobContext, type SourceMounts, noMounts } from '#shared/populate/sources/row.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { BackupRequest } from '#shared/transfer/spec.ts';

export interface JobBackup {
  /** Its key is what keys begin with, and ends in a slash. */
  readonly into: Source<'s3' | 'nfs'>;
}

export const toBackupRequest = ({ into }: JobBackup, context: JobContext): BackupRequest => {
  const told = toTransferSource(into, context);
  if (told.type !== 's3' && told.type !== 'folder') throw new InvalidInput('a backup goes to a store or a folder');
  return { into: told };
};

/** Credentials as those of a source; an NFS export is written to. */
export const mountsOfBackup = (request: JobBackup | undefined, context: JobContext): SourceMounts => {
  if (request === undefined) return noMounts;
  return request.into.type === 'nfs' ? exportMounts(request.into, false) : mountsOfSource(request.into, context);
};
