// Where a backup Job keeps what it reads: what its worker is told, and what is mounted into its pod. Called by transfer-job.ts.
import {
  type NfsJobSource,
  type S3JobSource,
  exportMounts,
  mountsOfSource,
  toTransferSource,
} from '#shared/populate/job-source.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { BackupRequest } from '#shared/transfer/spec.ts';

export interface JobBackup {
  /** Its key is what keys begin with, and ends in a slash. */
  readonly into: S3JobSource | NfsJobSource;
}

export const toBackupRequest = ({ into }: JobBackup, settings: PopulateSettings): BackupRequest => {
  const told = toTransferSource(into, settings);
  if (told.type !== 's3' && told.type !== 'folder') throw new InvalidInput('a backup goes to a store or a folder');
  return { into: told };
};

/** Credentials as those of a source; an NFS export is written to. */
export const mountsOfBackup = (request: JobBackup | undefined, settings: PopulateSettings) => {
  if (request === undefined) return { volumes: [], mounts: [] };
  return request.into.type === 'nfs' ? exportMounts(request.into, false) : mountsOfSource(request.into, settings);
};
