// The part of Longhorn's HTTP API that transfers backing images. Uploads are whole files, downloads are compressed with gzip.
import { randomUUID } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import { type Dispatcher, request } from 'undici';
import { backingImageDataSources, backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { halfSector, unkeptFormat } from '#shared/backends/backingimage/origin.ts';
import { dispositionOf, endingFor, fileNameOf } from '#shared/exchange/download/file-name.ts';
import { toWeb, unhurriedAgent } from '#shared/exchange/http/agent.ts';
import { asProblem } from '#shared/exchange/upload/look-ahead.ts';
import { isTransferError } from '#shared/transfer/fault.ts';
import { bufferReader } from '#shared/transfer/format/disk.ts';
import { readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { untilTruncated } from '#shared/transfer/format/qcow2/refcounts.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { targetText } from './target-name.ts';
import { type ExchangeTarget, findTarget } from './target.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { redact } from '#shared/runtime/redact.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import { joined } from '#shared/transfer/source/source.ts';

interface LonghornApi {
  /** `http://longhorn-backend.longhorn-system:9500` */
  readonly url: string;
  /** Name of the backing image. */
  readonly name: string;
  readonly signal: AbortSignal;
}

const placeOf = ({ url, name }: LonghornApi): string =>
  `${url.replace(/\/+$/, '')}/v1/backingimages/${encodeURIComponent(name)}`;

const unreachable = (error: unknown): Problem =>
  new Problem(503, 'BackendUnavailable', `Longhorn does not answer (${redact(messageOf(error))}); try again`, {
    headers: { 'retry-after': '5' },
  });

/** The multipart form that Longhorn requires around the file. */
async function* formOf(file: AsyncIterable<Buffer>, head: Buffer, tail: Buffer): AsyncGenerator<Buffer> {
  yield head;
  yield* file;
  yield tail;
}

/** `size`: expected bytes of the file. Throws a Problem with Longhorn's message if the upload is rejected. */
const sendToLonghorn = async (api: LonghornApi, file: AsyncIterable<Buffer>, size: number): Promise<void> => {
  const boundary = `bullion-${randomUUID()}`;
  const head = Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="chunk"; filename="disk"\r\nContent-Type: application/octet-stream\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  let answer: Dispatcher.ResponseData;
  try {
    answer = await request(`${placeOf(api)}?action=upload&size=${size}`, {
      method: 'POST',
      dispatcher: unhurriedAgent(),
      signal: api.signal,
      headers: {
        'content-type': `multipart/form-data; boundary=${boundary}`,
        'content-length': String(head.length + size + tail.length),
      },
      body: Readable.from(formOf(file, head, tail), { objectMode: false }),
    });
  } catch (error) {
    if (isTransferError(error)) throw new Problem(400, error.code, error.message);
    throw error instanceof Problem ? error : unreachable(error);
  }
  const message = redact((await answer.body.text()).trim().slice(0, 500));
  if (answer.statusCode < 300) return;
  const status = answer.statusCode >= 500 ? 502 : 400;
  throw new Problem(status, 'UploadFailed', `upload failed: ${message === '' ? answer.statusCode : message}`);
};

/** The file, compressed with gzip. Throws a Problem. */
const takeFromLonghorn = async (api: LonghornApi): Promise<Readable> => {
  const { statusCode, body } = await request(`${placeOf(api)}/download`, {
    dispatcher: unhurriedAgent(),
    signal: api.signal,
  }).catch((error: unknown) => {
    throw unreachable(error);
  });
  if (statusCode === 200) return body;
  const message = redact((await body.text()).trim().slice(0, 500));
  throw new Problem(
    502,
    'DownloadFailed',
    `Longhorn does not serve the file: ${message === '' ? statusCode : message}`,
  );
};

// Downloads the file of a backing image: compressed by Longhorn, or decompressed, which can be uploaded unchanged.

interface Stored {
  readonly bytes: number | undefined;
  /** The disk in a qcow2 has another size than the file. */
  readonly format: 'qcow2' | 'raw';
}

/** The requested compression; only the stored format is available. Throws a Problem (400). */
const isPacked = (query: URLSearchParams, format: Stored['format'], standard: boolean): boolean => {
  const [asked, compression] = [query.get('format'), query.get('compression')];
  const fits = (asked ?? format) === format && ['none', 'gz', null].includes(compression) && !query.has('level');
  if (fits) return compression === null ? asked === null && standard : compression === 'gz';
  throw new Problem(
    400,
    'BadRequest',
    `Longhorn stores this file as ${format} and serves it unchanged: omit format and level, and set compression to none or gz`,
  );
};

const readStored = async ({ kube }: ExchangeDeps, name: string): Promise<Stored> => {
  const { size = 0, virtualSize = 0 } =
    (await kube.get(backingImages, { namespace: longhornNamespace, name }))?.status ?? {};
  const isQcow2 = virtualSize > 0 && virtualSize !== size;
  return { bytes: size > 0 ? size : undefined, format: isQcow2 ? 'qcow2' : 'raw' };
};

const requireReadable = ({ isUsable, isEncrypted, name, message }: ExchangeTarget): void => {
  if (!isUsable) throw new Problem(409, 'NotReady', `${targetText(name)} cannot be downloaded yet: ${message}`);
  if (isEncrypted === true) throw new Problem(409, 'ImageEncrypted', 'encrypted image is not supported for download');
};

interface LonghornDownload {
  readonly target: ExchangeTarget & { readonly backingImage: string };
  /** Compressed by default, like Harvester's link. */
  readonly isPackedByDefault: boolean;
}

/** Handles GET and HEAD. There are no ranges: the file is compressed while it is sent. */
export const downloadFromLonghorn = async (
  deps: ExchangeDeps,
  incoming: Request,
  { target, isPackedByDefault }: LonghornDownload,
): Promise<Response> => {
  requireReadable(target);
  const { bytes, format } = await readStored(deps, target.backingImage);
  const packed = isPacked(new URL(incoming.url).searchParams, format, isPackedByDefault);
  const plainType = format === 'qcow2' ? 'application/x-qemu-disk' : 'application/octet-stream';
  const extension = endingFor(target.sourceFormat, packed ? `${format}.gz` : format);
  const headers = {
    'content-type': packed ? 'application/gzip' : plainType,
    'content-disposition': dispositionOf(fileNameOf(target.displayName, extension)),
    'accept-ranges': 'none',
    'cache-control': 'private',
    ...(packed || bytes === undefined ? {} : { 'content-length': String(bytes) }),
  };
  if (incoming.method === 'HEAD') return new Response(null, { status: 200, headers });
  const file = await takeFromLonghorn({ url: deps.longhornUrl, name: target.backingImage, signal: incoming.signal });
  // A failure of one stream ends the other and the answer; the client detects it by the length.
  const body: Readable = packed ? file : pipeline(file, createGunzip(), () => undefined);
  return new Response(toWeb(body), { status: 200, headers });
};

// Uploads a file into a backing image. Longhorn stores files unchanged, so files that it would misinterpret are rejected here.

const pollMs = 300;

interface LonghornUpload {
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

/**
 * A qcow2 whose end is missing would be kept by Longhorn as it is, and the disk would lack that part. The first chunk is judged at once. Throws a Problem
 * (400) if it tells, and TransferError later.
 */
const judged = (stream: AsyncIterable<Buffer>, size: number): Promise<AsyncIterable<Buffer>> =>
  asProblem(async () => {
    const chunks = stream[Symbol.asyncIterator]();
    const head = (await chunks.next()).value ?? Buffer.alloc(0);
    const header = await readQcow2Header(bufferReader(head, size));
    const passing = untilTruncated(header, size, joined(head, chunks));
    const first = await passing.next();
    return joined(first.done === true ? head : first.value, passing);
  });

export const uploadToLonghorn = async (deps: ExchangeDeps, upload: LonghornUpload): Promise<void> => {
  const size = requireKept(upload);
  const { target, inspection, signal } = upload;
  const stream = inspection.format === 'qcow2' ? await judged(upload.stream, size) : upload.stream;
  await untilPending(deps, upload);
  await sendToLonghorn({ url: deps.longhornUrl, name: target.backingImage, signal }, stream, size);
  await untilDecided(deps, upload);
};
