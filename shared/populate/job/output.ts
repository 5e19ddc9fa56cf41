// The destination of an export Job: input of its worker, and mounts of its pod. Called by transfer-job.ts.
import { type Source, mountsOfSource, toTransferSource } from '#shared/populate/source.ts';
import { type JobContext, type SourceMounts, noMounts } from '#shared/populate/sources/row.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { ExportRequest, BackupRequest } from '#shared/transfer/spec.ts';
import { exportMounts } from '#shared/populate/sources/mounted.ts';

/** A file `disk.img` in a claim of the owner's namespace, with a file system. */
export interface ClaimTarget {
  readonly type: 'claim';
  readonly claimName: string;
}

/** The object that `export` creates and that `abort` and `discard` remove. */
export interface JobExport {
  /** The Job is the only writer of this object while it runs. */
  readonly object: Source<'object' | 's3' | 'registry'> | ClaimTarget;
  readonly form: ExportRequest['form'];
  /** Also compute the sha256 of the guest's bytes; takes one second per 1.4 GB of the disk. Objects only. */
  readonly guestDigest?: boolean | undefined;
  /** Images only. */
  readonly image?: ExportedImage | undefined;
}

export interface ExportedImage extends Pick<
  NonNullable<ExportRequest['image']>,
  'annotations' | 'environment' | 'created'
> {
  /** Secret with the private key that signs it. */
  readonly signingSecretName?: string | undefined;
}

const signingPath = '/signing-key';

/** Mount path of claims that are exported to, used by the worker and by its readers. */
export const exportPath = '/export';
export const exportFile = 'disk.img';

export const toExportRequest = (
  { object, form, guestDigest = false, image = {} }: JobExport,
  context: JobContext,
): ExportRequest => {
  if (object.type === 'claim') return { form, path: `${exportPath}/${exportFile}`, guestDigest: false };
  const given = toTransferSource(object, context);
  if (given.type === 'registry') {
    const { signingSecretName: name, ...about } = image;
    const signing = name === undefined ? {} : { signing: { dir: signingPath, name } };
    return { form, image: { ...given, ...about, ...signing, owner: context.owner.uid }, guestDigest: false };
  }
  if (given.type !== 's3') throw new InvalidInput('an export goes to an object store or a registry');
  const { type: _, mirrors: __, ...place } = given;
  return { form, object: place, guestDigest };
};

/** Optional, like other Secrets: a running pod reports at once what is missing. */
const withSigning = (mounts: SourceMounts, secretName: string | undefined): SourceMounts =>
  secretName === undefined
    ? mounts
    : {
        ...mounts,
        volumes: [...mounts.volumes, { name: 'signing-key', secret: { secretName, optional: true } }],
        mounts: [...mounts.mounts, { name: 'signing-key', mountPath: signingPath, readOnly: true }],
      };

/** Credentials as for a source, or the claim. */
export const mountsOfExport = (request: JobExport | undefined, context: JobContext): SourceMounts => {
  if (request === undefined) return noMounts;
  const { object, image: { signingSecretName } = {} } = request;
  if (object.type !== 'claim') return withSigning(mountsOfSource(object, context), signingSecretName);
  return {
    volumes: [{ name: 'export', persistentVolumeClaim: { claimName: object.claimName } }],
    mounts: [{ name: 'export', mountPath: exportPath }],
    devices: [],
  };
};

// The destination of a backup Job: input of its worker, and mounts of its pod.

export interface JobBackup {
  /** Its key is the prefix of all keys, and ends in a slash. */
  readonly into: Source<'s3' | 'nfs'>;
}

export const toBackupRequest = ({ into }: JobBackup, context: JobContext): BackupRequest => {
  const given = toTransferSource(into, context);
  if (given.type !== 's3' && given.type !== 'folder') throw new InvalidInput('a backup goes to a store or a folder');
  return { into: given };
};

/** Credentials as for a source; an NFS export is mounted writable. */
export const mountsOfBackup = (request: JobBackup | undefined, context: JobContext): SourceMounts => {
  if (request === undefined) return noMounts;
  return request.into.type === 'nfs' ? exportMounts(request.into, false) : mountsOfSource(request.into, context);
};
