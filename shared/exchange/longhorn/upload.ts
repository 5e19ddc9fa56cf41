// Uploads a file into a backing image. Longhorn stores files unchanged, so files that it would misinterpret are rejected here.
import { setTimeout as sleep } from 'node:timers/promises';
import { halfSector, unkeptFormat } from '#shared/backends/backingimage/origin.ts';
import { backingImageDataSources, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { sendToLonghorn } from '#shared/exchange/longhorn/client.ts';
import { type ExchangeTarget, findTarget } from '#shared/exchange/target.ts';
import { targetText } from '#shared/exchange/target-name.ts';
import { redact } from '#shared/runtime/redact.ts';
import type { Inspection } from '#shared/transfer/report.ts';

const pollMs = 300;

export interface LonghornUpload {
  /** With its backing image. */
  readonly target: ExchangeTarget & { readonly backingImage: string };
  readonly stream: AsyncIterable<Buffer>;
  readonly length: number | undefined;
  readonly inspection: Inspection;
  readonly hasChecksum: boolean;
  readonly signal: AbortSignal;
}

/** The size of the file. Throws a Problem if Longhorn would reject or misinterpret the file. */
const requireKept = ({ length, inspection, hasChecksum }: LonghornUpload): number => {
  if (length === undefined)
    throw new Problem(400, 'SizeUnknown', 'Longhorn requires the length of the file: add &size=<its bytes>');
  if (hasChecksum)
    throw new Problem(
      400,
      'BadRequest',
      'Longhorn checks files against spec.checksum (SHA-512): create the image with it',
    );
  const problem = unkeptFormat(inspection) ?? halfSector(length);
  if (problem !== undefined) throw new Problem(400, 'UnsupportedFormat', problem);
  return length;
};

/** Longhorn starts a receiver for the bytes. Throws a Problem if it does not. */
const untilPending = async ({ kube, now, waitMs }: ExchangeDeps, { target, signal }: LonghornUpload) => {
  const deadline = now() + waitMs;
  for (;;) {
    const found = await kube.get(backingImageDataSources, { namespace: longhornNamespace, name: target.backingImage });
    const { currentState = '', message = '' } = found?.status ?? {};
    if (currentState === 'pending') return;
    if (currentState.startsWith('failed')) throw new Problem(502, 'UploadFailed', `upload failed: ${redact(message)}`);
    if (now() >= deadline) {
      const why = currentState === '' ? 'it reports no state yet' : `it is ${currentState}`;
      throw new Problem(503, 'NotReady', `Longhorn does not wait for the file yet (${why}); try again`, {
        headers: { 'retry-after': '5' },
      });
    }
    await sleep(pollMs, undefined, { signal });
  }
};

/** Waits for Longhorn to verify the file, and reports the result to the client. */
const untilDecided = async ({ kube, now, waitMs }: ExchangeDeps, { target, signal }: LonghornUpload) => {
  for (const deadline = now() + waitMs; now() < deadline; await sleep(pollMs, undefined, { signal })) {
    const observed = await findTarget(kube, target.name);
    const { stage, failures = 0, lastFailure = observed.message } = observed;
    if (stage === 'done') return;
    if (stage === 'failed' || failures > (target.failures ?? 0))
      throw new Problem(
        400,
        'UploadFailed',
        `${targetText(target.name)} was not created: ${lastFailure}; send the file again`,
      );
  }
};

export const uploadToLonghorn = async (deps: ExchangeDeps, upload: LonghornUpload): Promise<void> => {
  const size = requireKept(upload);
  const { target, stream, signal } = upload;
  await untilPending(deps, upload);
  await sendToLonghorn({ url: deps.longhornUrl, name: target.backingImage, signal }, stream, size);
  await untilDecided(deps, upload);
};
