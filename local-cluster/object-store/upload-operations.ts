// Multipart uploads: started, filled in any order, completed or aborted.
import { createReadStream } from 'node:fs';
import { createHash } from 'node:crypto';
import { announced, readText, receiveBody, withoutChecksums, writeBytes } from '#local-cluster/object-store/body.ts';
import { createDigest } from '#local-cluster/object-store/checksum.ts';
import { parseRange, writeCondition } from '#local-cluster/object-store/conditions.ts';
import { type Entry, newId } from '#local-cluster/object-store/disk.ts';
import { StoreFault } from '#local-cluster/object-store/fault.ts';
import {
  checkKey,
  checksumHeaders,
  copyBytes,
  findCopySource,
  keptHeaders,
  putOrDrop,
} from '#local-cluster/object-store/object-operations.ts';
import { type Call, type Operation, xmlAnswer } from '#local-cluster/object-store/operation.ts';
import { elementsOf, textOf, xml } from '#local-cluster/object-store/xml.ts';

const leastPartBytes = 5 * 2 ** 20;
const mostParts = 10_000;

const uploadIdOf = ({ request }: Call): string => request.query.get('uploadId') ?? '';

export const createUpload: Operation = async ({ request, store }) => {
  const { bucket, key, headers } = request;
  checkKey(key);
  const id = newId();
  await store.putUpload(bucket, { id, key, started: new Date().toISOString(), headers: keptHeaders(headers) });
  return xmlAnswer(xml('InitiateMultipartUploadResult', { Bucket: bucket, Key: key, UploadId: id }));
};

const partNumberOf = ({ request }: Call): number => {
  const number = Number(request.query.get('partNumber'));
  if (Number.isInteger(number) && number >= 1 && number <= mostParts) return number;
  throw new StoreFault('InvalidArgument', 'a part number is 1 to 10000');
};

const putPart = async (call: Call, part: Entry): Promise<void> => {
  const { request, store } = call;
  try {
    await store.putPart(request.bucket, uploadIdOf(call), part);
  } catch (error) {
    await store.dropBlob(request.bucket, part.blob);
    throw error;
  }
};

export const uploadPart: Operation = async (call) => {
  const { request, store, signed } = call;
  const number = partNumberOf(call);
  await store.upload(request.bucket, request.key, uploadIdOf(call));
  const { id, path } = store.newBlob(request.bucket);
  const { size, md5, checksum } = await receiveBody(request, signed, path);
  const modified = new Date().toISOString();
  await putPart(call, { key: String(number), blob: id, size, etag: md5, modified, checksum, headers: {} });
  return { status: 200, headers: { etag: `"${md5}"`, ...checksumHeaders({ checksum }) } };
};

export const copyPart: Operation = async (call) => {
  const { request, store } = call;
  const number = partNumberOf(call);
  await store.upload(request.bucket, request.key, uploadIdOf(call));
  const source = await findCopySource(call);
  const wanted = request.headers['x-amz-copy-source-range'];
  const range = wanted === undefined ? undefined : parseRange({ range: wanted }, source.entry);
  const copied = await copyBytes(call, source, range);
  await putPart(call, { ...copied, key: String(number), headers: {} });
  return xmlAnswer(xml('CopyPartResult', { ETag: `"${copied.etag}"`, LastModified: copied.modified }));
};

interface Named {
  readonly number: number;
  readonly etag: string;
}

const parseParts = (body: string): readonly Named[] => {
  const named = elementsOf(body, 'Part').map((part) => ({
    number: Number(textOf(part, 'PartNumber')),
    etag: (textOf(part, 'ETag') ?? '').replaceAll('"', ''),
  }));
  if (named.length === 0) throw new StoreFault('MalformedXML', 'the document names no parts');
  const isAscending = named.every(({ number }, index) => index === 0 || number > (named[index - 1]?.number ?? 0));
  if (!isAscending) throw new StoreFault('InvalidPartOrder', 'the parts are not in ascending order');
  return named;
};

const choose = (named: readonly Named[], present: readonly Entry[]): readonly Entry[] => {
  const chosen = named.map(({ number, etag }) => {
    const part = present.find(({ key }) => key === String(number));
    if (part?.etag === etag) return part;
    throw new StoreFault('InvalidPart', `part ${number} is missing or has another ETag`);
  });
  if (chosen.slice(0, -1).some(({ size }) => size < leastPartBytes)) {
    throw new StoreFault('EntityTooSmall', 'every part but the last has 5 MiB at least');
  }
  return chosen;
};

/** As in S3: the MD5 of the parts' MD5s, and the number of parts. */
const etagOf = (parts: readonly Entry[]): string =>
  `${createHash('md5')
    .update(Buffer.concat(parts.map(({ etag }) => Buffer.from(etag, 'hex'))))
    .digest('hex')}-${parts.length}`;

/** The parts in one file, and the checksum of the whole if one was sent. */
const join = async ({ store, request }: Call, parts: readonly Entry[]) => {
  const { id, path } = store.newBlob(request.bucket);
  const algorithm = announced(request);
  const digest = algorithm === undefined ? undefined : createDigest(algorithm);
  async function* bytes(): AsyncGenerator<Buffer, void, undefined> {
    for (const { blob, size } of parts) {
      if (size > 0) yield* createReadStream(store.blobPath(request.bucket, blob)) as AsyncIterable<Buffer>;
    }
  }
  try {
    const size = await writeBytes(path, bytes(), digest === undefined ? [] : [digest]);
    if (algorithm === undefined || digest === undefined) return { blob: id, size };
    const checksum = { algorithm, value: digest.value() };
    if (request.headers[`x-amz-checksum-${algorithm}`] !== checksum.value)
      throw new StoreFault('BadDigest', `the object is not that of its x-amz-checksum-${algorithm}`);
    return { blob: id, size, checksum };
  } catch (error) {
    await store.dropBlob(request.bucket, id);
    throw error;
  }
};

/** The element of an answer with the checksum: ChecksumCRC32, ChecksumSHA256 and so on. */
const checksumElements = ({ checksum }: Pick<Entry, 'checksum'>): Record<string, string> =>
  checksum === undefined
    ? {}
    : { [`Checksum${checksum.algorithm.toUpperCase()}`]: checksum.value, ChecksumType: 'FULL_OBJECT' };

export const completeUpload: Operation = async (call) => {
  const { request, store, signed } = call;
  const { bucket, key } = request;
  const upload = await store.upload(bucket, key, uploadIdOf(call));
  const named = parseParts(await readText(withoutChecksums(request), signed));
  const parts = choose(named, await store.parts(bucket, upload.id));
  const etag = etagOf(parts);
  const joined = await join(call, parts);
  const entry: Entry = { ...joined, key, etag, modified: new Date().toISOString(), headers: upload.headers };
  await putOrDrop({ store, bucket, entry, condition: writeCondition(request.headers) });
  await store.deleteUpload(bucket, upload.id);
  const answer = { Location: request.path, Bucket: bucket, Key: key, ETag: `"${etag}"`, ...checksumElements(entry) };
  return xmlAnswer(xml('CompleteMultipartUploadResult', answer));
};

export const abortUpload: Operation = async (call) => {
  const { request, store } = call;
  const { id } = await store.upload(request.bucket, request.key, uploadIdOf(call));
  await store.deleteUpload(request.bucket, id);
  return { status: 204 };
};

export const listParts: Operation = async (call) => {
  const { request, store } = call;
  const { bucket, key, query } = request;
  const { id } = await store.upload(bucket, key, uploadIdOf(call));
  const after = Number(query.get('part-number-marker') ?? 0);
  const most = Math.min(1000, Number(query.get('max-parts') ?? 1000));
  const waiting = (await store.parts(bucket, id)).filter(({ key: number }) => Number(number) > after);
  const page = waiting.slice(0, most);
  const isTruncated = waiting.length > page.length;
  return xmlAnswer(
    xml('ListPartsResult', {
      Bucket: bucket,
      Key: key,
      UploadId: id,
      PartNumberMarker: after,
      NextPartNumberMarker: isTruncated ? page.at(-1)?.key : undefined,
      MaxParts: most,
      IsTruncated: isTruncated,
      Part: page.map((part) => ({
        PartNumber: part.key,
        LastModified: part.modified,
        ETag: `"${part.etag}"`,
        Size: part.size,
      })),
    }),
  );
};

export const listUploads: Operation = async ({ request, store }) => {
  const prefix = request.query.get('prefix') ?? '';
  const uploads = (await store.uploads(request.bucket))
    .filter(({ key }) => key.startsWith(prefix))
    .toSorted((a, b) => (a.key === b.key ? (a.started < b.started ? -1 : 1) : a.key < b.key ? -1 : 1));
  return xmlAnswer(
    xml('ListMultipartUploadsResult', {
      Bucket: request.bucket,
      Prefix: prefix,
      MaxUploads: uploads.length,
      IsTruncated: false,
      Upload: uploads.map(({ id, key, started }) => ({ Key: key, UploadId: id, Initiated: started })),
    }),
  );
};
