// Operations on one object.
import { createReadStream } from 'node:fs';
import { receiveBody, writeBytes } from '#local-cluster/object-store/body.ts';
import { createDigest, toHex } from '#local-cluster/object-store/checksum.ts';
import { type ByteRange, checkRead, parseRange, writeCondition } from '#local-cluster/object-store/conditions.ts';
import type { Entry } from '#local-cluster/object-store/disk.ts';
import { StoreFault } from '#local-cluster/object-store/fault.ts';
import { type Answer, type Call, type Operation, xmlAnswer } from '#local-cluster/object-store/operation.ts';
import { xml } from '#local-cluster/object-store/xml.ts';

const mostKeyBytes = 1024;
const kept = [
  'content-type',
  'content-encoding',
  'content-disposition',
  'content-language',
  'cache-control',
  'expires',
];

/** Headers that are stored with an object. */
export const keptHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> => {
  const entries = Object.entries(headers).filter(([name]) => kept.includes(name) || name.startsWith('x-amz-meta-'));
  const result = Object.fromEntries(entries);
  // The remaining encoding after the chunks were decoded.
  const encoding = result['content-encoding']?.replace(/^aws-chunked,?\s*/, '');
  if (encoding === undefined) return result;
  const { 'content-encoding': _, ...rest } = result;
  return encoding === '' ? rest : { ...rest, 'content-encoding': encoding };
};

export const checkKey = (key: string): void => {
  if (Buffer.byteLength(key) > mostKeyBytes) throw new StoreFault('KeyTooLongError', 'a key has 1024 bytes at most');
};

export const checksumHeaders = ({ checksum }: Pick<Entry, 'checksum'>): Record<string, string> =>
  checksum === undefined
    ? {}
    : { [`x-amz-checksum-${checksum.algorithm}`]: checksum.value, 'x-amz-checksum-type': 'FULL_OBJECT' };

export const putObject: Operation = async ({ request, store, signed }) => {
  const { bucket, key, headers } = request;
  checkKey(key);
  await store.bucket(bucket);
  const condition = writeCondition(headers);
  // Checked before the body is received if possible, and again at the end.
  condition(await store.entry(bucket, key));
  const { id, path } = store.newBlob(bucket);
  const { size, md5, checksum } = await receiveBody(request, signed, path);
  const entry: Entry = {
    key,
    blob: id,
    size,
    etag: md5,
    modified: new Date().toISOString(),
    checksum,
    headers: keptHeaders(headers),
  };
  await putOrDrop({ store, bucket, entry, condition });
  return { status: 200, headers: { etag: `"${md5}"`, ...checksumHeaders({ checksum }) } };
};

export const putOrDrop = async (put: {
  readonly store: Call['store'];
  readonly bucket: string;
  readonly entry: Entry;
  readonly condition: ReturnType<typeof writeCondition>;
}): Promise<void> => {
  const { store, bucket, entry, condition } = put;
  try {
    await store.putEntry(bucket, entry, condition);
  } catch (error) {
    await store.dropBlob(bucket, entry.blob);
    throw error;
  }
};

const noKey = (key: string): StoreFault =>
  new StoreFault('NoSuchKey', 'the object does not exist', { details: { Key: key } });

const readHeaders = ({ request }: Call, entry: Entry, range: ByteRange | undefined): Record<string, string> => {
  const length = range === undefined ? entry.size : range.last - range.first + 1;
  const isAsked = request.headers['x-amz-checksum-mode']?.toUpperCase() === 'ENABLED' && range === undefined;
  const overrides = [...request.query]
    .filter(([name]) => name.startsWith('response-'))
    .map(([name, value]) => [name.slice('response-'.length), value] as const);
  return {
    'content-type': 'binary/octet-stream',
    ...entry.headers,
    ...Object.fromEntries(overrides),
    etag: `"${entry.etag}"`,
    'last-modified': new Date(entry.modified).toUTCString(),
    'accept-ranges': 'bytes',
    'content-length': String(length),
    ...(range === undefined ? {} : { 'content-range': `bytes ${range.first}-${range.last}/${entry.size}` }),
    ...(isAsked ? checksumHeaders(entry) : {}),
  };
};

export const getObject: Operation = async (call) => {
  const { request, store } = call;
  const opened = await store.open(request.bucket, request.key);
  if (opened === undefined) throw noKey(request.key);
  const { entry, file } = opened;
  try {
    if (checkRead(request.headers, entry) === 'unchanged') {
      await file.close();
      return { status: 304, headers: { etag: `"${entry.etag}"` } };
    }
    const range = parseRange(request.headers, entry);
    const headers = readHeaders(call, entry, range);
    if (entry.size === 0 || request.method === 'HEAD') {
      await file.close();
      return { status: range === undefined ? 200 : 206, headers };
    }
    const bounds = range === undefined ? {} : { start: range.first, end: range.last };
    return { status: range === undefined ? 200 : 206, headers, body: file.createReadStream(bounds) };
  } catch (error) {
    await file.close();
    throw error;
  }
};

export const deleteObject: Operation = async ({ request, store }) => {
  await store.deleteEntry(request.bucket, request.key);
  return { status: 204 };
};

/** The source in `x-amz-copy-source`, with its conditions checked. */
export const findCopySource = async ({
  request,
  store,
}: Call): Promise<{ readonly bucket: string; readonly entry: Entry }> => {
  const text = decodeURIComponent(request.headers['x-amz-copy-source'] ?? '').replace(/^\//, '');
  const slash = text.indexOf('/');
  if (slash < 1) throw new StoreFault('InvalidArgument', 'x-amz-copy-source must be bucket/key');
  const [bucket, key] = [text.slice(0, slash), text.slice(slash + 1)];
  const entry = await store.entry(bucket, key);
  if (entry === undefined) throw noKey(key);
  if (checkRead(request.headers, entry, 'x-amz-copy-source-') === 'unchanged') {
    throw new StoreFault('PreconditionFailed', 'the source of the copy is not the one that was asked for');
  }
  return { bucket, entry };
};

/** Copies bytes within the store; returns their metadata. */
export const copyBytes = async (
  { store, request }: Call,
  source: { readonly bucket: string; readonly entry: Entry },
  range: ByteRange | undefined,
) => {
  const { id, path } = store.newBlob(request.bucket);
  const md5 = createDigest('md5');
  const bounds = range === undefined ? {} : { start: range.first, end: range.last };
  const bytes =
    source.entry.size === 0 ? [] : createReadStream(store.blobPath(source.bucket, source.entry.blob), bounds);
  try {
    const size = await writeBytes(path, bytes as AsyncIterable<Buffer>, [md5]);
    return { blob: id, size, etag: toHex(md5.value()), modified: new Date().toISOString() };
  } catch (error) {
    await store.dropBlob(request.bucket, id);
    throw error;
  }
};

export const copyObject: Operation = async (call): Promise<Answer> => {
  const { request, store } = call;
  checkKey(request.key);
  await store.bucket(request.bucket);
  const source = await findCopySource(call);
  const isReplaced = request.headers['x-amz-metadata-directive']?.toUpperCase() === 'REPLACE';
  const copied = await copyBytes(call, source, undefined);
  const entry: Entry = {
    ...copied,
    key: request.key,
    headers: isReplaced ? keptHeaders(request.headers) : source.entry.headers,
  };
  await putOrDrop({ store, bucket: request.bucket, entry, condition: writeCondition(request.headers) });
  return xmlAnswer(xml('CopyObjectResult', { ETag: `"${entry.etag}"`, LastModified: entry.modified }));
};
