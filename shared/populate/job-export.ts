// Where an export Job writes to: what its worker is told, and what is mounted into its pod. Called by transfer-job.ts.
import { type ObjectSource, type S3JobSource, mountsOfSource, toTransferSource } from '#shared/populate/job-source.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { ExportRequest } from '#shared/transfer/spec.ts';

/** What `export` makes, and what `discard` removes. */
export interface JobExport {
  /** Nobody else writes to this object while the Job runs. */
  readonly object: ObjectSource | S3JobSource;
  readonly form: ExportRequest['form'];
  /** Also take the sha256 of the guest's bytes; costs a second for each 1.4 GB of the disk. */
  readonly guestDigest?: boolean | undefined;
}

export const toExportRequest = (
  { object, form, guestDigest = false }: JobExport,
  settings: PopulateSettings,
): ExportRequest => {
  const told = toTransferSource(object, settings);
  if (told.type !== 's3') throw new InvalidInput('an export goes to an object store');
  const { type: _, ...place } = told;
  return { form, object: place, guestDigest };
};

/** Its credentials, as those of a source. */
export const mountsOfExport = (request: JobExport | undefined, settings: PopulateSettings) =>
  request === undefined ? { volumes: [], mounts: [] } : mountsOfSource(request.object, settings);
