// Azure Blob Storage as an object store: a container is a bucket, block blobs are objects, and the blocks of a blob are the parts of an upload.
import { createHash, randomBytes } from 'node:crypto';
import type { HttpClient, HttpGet, HttpResponse } from '#shared/clients/http/client.ts';
import { elementIn } from '#shared/clients/http/refusal.ts';
import type { ListedS3Object, ObjectFacts, S3Client } from '#shared/clients/s3/client.ts';
import { S3Failure, type S3Fault, type S3Subject, nameOf, unlessMissing } from '#shared/clients/s3/errors.ts';
import type { MultipartUploads } from '#shared/clients/s3/multipart.ts';
import type { S3ObjectKey } from '#shared/clients/s3/send.ts';
import { readUpTo } from '#shared/runtime/read-bytes.ts';
import { lookup } from '#shared/runtime/lookup.ts';

/** Codes of errors that a status does not tell apart. */
const faultsByCode: Readonly<Record<string, S3Fault>> = {
  ContainerNotFound: 'BucketNotFound',
  BlobAlreadyExists: 'PreconditionFailed',
  ServerBusy: 'RateLimited',
};

const faultOf = (status: number): S3Fault => {
  if (status === 401 || status === 403) return 'Denied';
  const known: Readonly<Record<number, S3Fault>> = {
    404: 'ObjectNotFound',
    412: 'PreconditionFailed',
    416: 'RangeOutside',
    429: 'RateLimited',
    408: 'Unavailable',
  };
  return known[status] ?? (status >= 500 ? 'Unavailable' : 'Refused');
};

const texts: Readonly<Record<S3Fault, string>> = {
  BucketNotFound: 'the container does not exist: create it, or name another one',
  ObjectNotFound: 'the container has no such blob',
  UploadNotFound: 'the upload was completed or aborted',
  Denied: 'the credentials are missing or not allowed to do this',
  PreconditionFailed: 'the blob has changed',
  RangeOutside: 'the range is outside of the blob',
  Refused: 'the store rejected the request',
  RateLimited: 'the store rejects further requests now',
  Unavailable: 'the store is busy or broken',
};

/** The code is in a header, so that the body need not be read. */
const toFailure = ({ status, headers }: HttpResponse, subject: S3Subject): S3Failure => {
  const code = lookup(headers, 'x-ms-error-code') ?? '';
  const fault = lookup(faultsByCode, code) ?? faultOf(status);
  const shown = /^\w{1,64}$/.test(code) ? ` ${code}` : '';
  const seconds = lookup(headers, 'retry-after');
  const wait = seconds !== undefined && /^\d{1,6}$/.test(seconds) ? { retryAfterSeconds: Number(seconds) } : {};
  return new S3Failure(fault, `${nameOf(subject)}: ${texts[fault]} (${status}${shown})`, wait);
};

const metadataPrefix = 'x-ms-meta-';

const factsOf = ({ headers }: HttpResponse): ObjectFacts => {
  const total = /\/(\d+)$/.exec(headers['content-range'] ?? '')?.[1] ?? headers['content-length'];
  const modified = Date.parse(headers['last-modified'] ?? '');
  const metadata = Object.entries(headers).filter(([name]) => name.startsWith(metadataPrefix));
  return {
    size: Number(total ?? 0),
    etag: headers['etag'],
    versionId: headers['x-ms-version-id'],
    lastModified: Number.isNaN(modified) ? undefined : new Date(modified).toISOString(),
    contentType: headers['content-type'],
    metadata: Object.fromEntries(metadata.map(([name, value]) => [name.slice(metadataPrefix.length), value])),
  };
};

const mostListBytes = 32 * 1024 * 1024;

const readText = async ({ body }: HttpResponse): Promise<string> => {
  const { bytes, isCut } = await readUpTo(body, mostListBytes);
  if (isCut) throw new S3Failure('Refused', 'the list of a container is longer than 32 MiB');
  return bytes.toString('utf8');
};

const listedIn = (xml: string): readonly ListedS3Object[] =>
  [...xml.matchAll(/<Blob>(.*?)<\/Blob>/gs)].map(([, blob = '']) => {
    const modified = Date.parse(elementIn(blob, 'Last-Modified'));
    const lastModified = Number.isNaN(modified) ? undefined : new Date(modified).toISOString();
    return { key: elementIn(blob, 'Name'), size: Number(elementIn(blob, 'Content-Length')), lastModified };
  });

/** All IDs of the blocks of a blob have the same length. */
const blockIdOf = (uploadId: string, number: number): string =>
  Buffer.from(`${uploadId}-${String(number).padStart(6, '0')}`).toString('base64');

type Query = Readonly<Record<string, string>>;

interface Writing extends Pick<HttpGet, 'headers' | 'signal'> {
  readonly body: Uint8Array;
  readonly query?: Query;
}

/** Requests of one account; answers without success are S3Failures. */
const createRequests = (http: HttpClient, origin: string) => {
  const urlOf = ({ bucket, key }: S3Subject, query: Query): URL => {
    const path = key === undefined ? [bucket] : [bucket, ...key.split('/')];
    if (path.some((part) => part === '.' || part === '..'))
      throw new S3Failure('Refused', `${nameOf({ bucket, key })}: the name of a blob has no parts "." and ".."`);
    const url = new URL(`${origin}/${path.map(encodeURIComponent).join('/')}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  };
  const send = async (
    subject: S3Subject,
    call: Omit<HttpGet, 'url' | 'signal'> & { readonly signal?: AbortSignal | undefined; readonly query?: Query } = {},
  ): Promise<HttpResponse> => {
    const { query = {}, signal, ...rest } = call;
    const answer = await http.get({
      ...rest,
      url: urlOf(subject, query),
      ...(signal === undefined ? {} : { signal }),
    });
    if (answer.status < 300) return answer;
    answer.discard();
    throw toFailure(answer, subject);
  };
  return {
    send,
    put: async (object: S3ObjectKey, { body, headers, ...call }: Writing): Promise<ObjectFacts> => {
      const own = { 'content-md5': createHash('md5').update(body).digest('base64'), ...headers };
      const answer = await send(object, { ...call, method: 'PUT', body, headers: own });
      answer.discard();
      return factsOf(answer);
    },
  };
};
type Requests = ReturnType<typeof createRequests>;

const signalled = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

/** The store knows no uploads: blocks that are not committed go after a week, or with the next blob of the name. */
const createBlocks = ({ put }: Requests): MultipartUploads => {
  const contentTypes = new Map<string, string>();
  return {
    begin: ({ contentType }) => {
      const uploadId = randomBytes(8).toString('hex');
      if (contentType !== undefined) contentTypes.set(uploadId, contentType);
      return Promise.resolve(uploadId);
    },
    putPart: async ({ bucket, key, uploadId, number, body, signal }) => {
      const blockid = blockIdOf(uploadId, number);
      await put({ bucket, key }, { body, query: { comp: 'block', blockid }, ...signalled(signal) });
      return blockid;
    },
    complete: async ({ bucket, key, uploadId, etags }) => {
      const list = etags.map((id) => `<Latest>${id}</Latest>`).join('');
      const body = Buffer.from(`<?xml version="1.0" encoding="utf-8"?><BlockList>${list}</BlockList>`);
      const contentType = contentTypes.get(uploadId);
      const headers = contentType === undefined ? {} : { 'x-ms-blob-content-type': contentType };
      const { etag, versionId } = await put({ bucket, key }, { body, query: { comp: 'blocklist' }, headers });
      return { etag, versionId, crc32: undefined };
    },
    abort: () => Promise.resolve(),
    list: () => Promise.resolve([]),
  };
};

const conditionOf = (isNew: boolean, etag: string | undefined): Query => {
  if (isNew) return { 'if-none-match': '*' };
  return etag === undefined ? {} : { 'if-match': etag };
};

/** `http` authorizes its requests. `origin`: of the account. */
export const createBlobClient = (http: HttpClient, origin: string): S3Client => {
  const requests = createRequests(http, origin);
  const { send, put } = requests;
  return {
    head: async (object) => factsOf(await send(object, { method: 'HEAD' })),
    get: async ({ bucket, key, range, etag, versionId, signal }) => {
      const query = versionId === undefined ? {} : { versionid: versionId };
      const headers = {
        ...(range === undefined ? {} : { range: `bytes=${range.first}-${range.last ?? ''}` }),
        ...conditionOf(false, etag),
      };
      const answer = await send({ bucket, key }, { query, headers, signal });
      return {
        ...factsOf(answer),
        contentRange: answer.headers['content-range'],
        body: answer.body,
        pour: (take) => answer.pour(take),
        discard: () => answer.discard(),
      };
    },
    put: async ({ bucket, key, body, isNew = false, etag, signal }) => {
      const headers = { 'x-ms-blob-type': 'BlockBlob', ...conditionOf(isNew, etag) };
      return (await put({ bucket, key }, { body, headers, ...signalled(signal) })).etag;
    },
    remove: (object) => unlessMissing(async () => (await send(object, { method: 'DELETE' })).discard()),
    list: async function* list(bucket, prefix = '') {
      let marker = '';
      do {
        const query = { restype: 'container', comp: 'list', prefix, ...(marker === '' ? {} : { marker }) };
        const xml = await readText(await send({ bucket }, { query }));
        yield* listedIn(xml);
        marker = elementIn(xml, 'NextMarker');
      } while (marker !== '');
    },
    multipart: createBlocks(requests),
  };
};
