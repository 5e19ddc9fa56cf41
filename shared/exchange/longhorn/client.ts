// The part of Longhorn's HTTP API that transfers backing images. Uploads are whole files, downloads are compressed with gzip.
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { type Dispatcher, request } from 'undici';
import { unhurriedAgent } from '#shared/exchange/http/agent.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { redact } from '#shared/runtime/redact.ts';

export interface LonghornApi {
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
export const sendToLonghorn = async (api: LonghornApi, file: AsyncIterable<Buffer>, size: number): Promise<void> => {
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
    throw error instanceof Problem ? error : unreachable(error);
  }
  const message = redact((await answer.body.text()).trim().slice(0, 500));
  if (answer.statusCode < 300) return;
  const status = answer.statusCode >= 500 ? 502 : 400;
  throw new Problem(status, 'UploadFailed', `upload failed: ${message === '' ? answer.statusCode : message}`);
};

/** The file, compressed with gzip. Throws a Problem. */
export const takeFromLonghorn = async (api: LonghornApi): Promise<Readable> => {
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
