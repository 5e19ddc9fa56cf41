// Jobs that others connect to: the one that is sent a file, and the one that hands a volume out.
import type { PopulateSettings } from '#shared/populate/settings.ts';
import type { JobContext, JobRow } from '#shared/populate/sources/row.ts';
import { mountsOfSpool, spoolPath } from '#shared/populate/job/spool.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { TransferSpec } from '#shared/transfer/spec.ts';

/** TCP port of a pod that waits for an upload. */
export const uploadPort = 8090;
/** TCP port of a pod that hands a volume out. */
export const downloadPort = 8091;
/** Seconds without a request after which it ends. Long enough for a client to come back after a cut. */
const downloadIdleSeconds = 60;

const keysUrlOf = ({ transferUrl }: PopulateSettings): string => {
  if (transferUrl === undefined)
    throw new InvalidInput('this installation takes no uploads and gives no downloads: it has no TRANSFER_URL');
  return new URL('keys', `${transferUrl.replace(/\/+$/, '')}/`).href;
};

/** Sent to the Job by the transfer function, for somebody. */
export const upload: JobRow<object> = {
  name: 'a file that a client sends',
  isServer: false,
  isFile: false,
  arrives: 'sent',
  moving: { phase: 'Downloading', doing: 'receiving the upload' },
  spec: (_source, { owner, settings }) => ({
    type: 'upload',
    port: uploadPort,
    keysUrl: keysUrlOf(settings),
    subject: owner.uid,
    idleSeconds: settings.uploadIdleSeconds,
    dir: spoolPath,
  }),
  mounts: (_source, { owner }) => ({ ...mountsOfSpool(owner), devices: [] }),
};

/** `identity` names what the volume holds, where nobody writes to it any more. */
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
