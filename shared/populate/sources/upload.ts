// Jobs that serve connections: the one that receives an upload, and the one that serves a volume for download.
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { type JobContext, type JobRow, receiving } from '#shared/populate/sources/row.ts';
import { mountsOfSpool, spoolPath } from '#shared/populate/job/spool.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { TransferSpec } from '#shared/transfer/spec.ts';

/** TCP port of a pod that receives an upload. */
export const uploadPort = 8090;
/** TCP port of a pod that serves a volume. */
export const downloadPort = 8091;
/** Seconds without bytes after which a Job with a part of a file ends: the part is kept, and the next request of the client starts another Job. */
const mostSilentSeconds = 300;
/** Seconds without a request after which it ends. Long enough for a client to reconnect. */
const downloadIdleSeconds = 60;

const keysUrlOf = ({ transferUrl }: PopulateSettings): string => {
  if (transferUrl === undefined)
    throw new InvalidInput('this installation supports neither uploads nor downloads: TRANSFER_URL is not set');
  return new URL('keys', `${transferUrl.replace(/\/+$/, '')}/`).href;
};

/** Sent to the Job by the transfer function, on behalf of a client. */
export const upload: JobRow<object> = {
  name: 'a file that a client sends',
  takes: [],
  isServer: false,
  isFile: false,
  arrives: 'sent',
  moving: receiving,
  spec: (_source, { owner, settings }) => ({
    type: 'upload',
    port: uploadPort,
    keysUrl: keysUrlOf(settings),
    subject: owner.uid,
    idleSeconds: settings.uploadIdleSeconds,
    pauseSeconds: Math.min(mostSilentSeconds, settings.uploadIdleSeconds),
    dir: spoolPath,
  }),
  mounts: (_source, { owner }) => ({ ...mountsOfSpool(owner), devices: [] }),
};

/** `identity` identifies the content of the volume, if it has no writer any more. */
export const toServeRequest = (
  identity: string | undefined,
  { owner, settings }: JobContext,
): NonNullable<TransferSpec['serve']> => ({
  port: downloadPort,
  keysUrl: keysUrlOf(settings),
  subject: owner.uid,
  idleSeconds: downloadIdleSeconds,
  ...(identity === undefined ? {} : { identity }),
});
