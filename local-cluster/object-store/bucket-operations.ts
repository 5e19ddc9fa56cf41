// Operations on buckets, and on several objects of one.
import { readText } from './body.ts';
import type { Entry } from './disk.ts';
import { StoreFault } from './fault.ts';
import { type Call, type Operation, xmlAnswer } from '#local-cluster/object-store/operation.ts';
import { elementsOf, textOf, xml, type XmlElements } from './xml.ts';

export const listBuckets: Operation = async ({ store }) => {
  const buckets = (await store.buckets()).map(({ name, created }) => ({ Name: name, CreationDate: created }));
  return xmlAnswer(xml('ListAllMyBucketsResult', { Owner: { ID: 'local' }, Buckets: { Bucket: buckets } }));
};

/** `public-read` permits anonymous reads of the objects; other access lists are not supported. */
const isPublic = ({ request }: Call): boolean => {
  const acl = request.headers['x-amz-acl'] ?? 'private';
  if (acl !== 'private' && acl !== 'public-read') {
    throw new StoreFault('NotImplemented', `the access list ${acl} is not known here: private and public-read are`);
  }
  return acl === 'public-read';
};

export const createBucket: Operation = async (call) => {
  const { request, store } = call;
  await readText(request, call.signed);
  await store.putBucket(request.bucket, { isPublic: isPublic(call), isNew: true });
  return { status: 200, headers: { location: `/${request.bucket}` } };
};

export const putBucketAcl: Operation = async (call) => {
  const { request, store } = call;
  await store.bucket(request.bucket);
  if ((await readText(request, call.signed)) !== '') {
    throw new StoreFault('NotImplemented', 'access lists are set by the header x-amz-acl here');
  }
  await store.putBucket(request.bucket, { isPublic: isPublic(call), isNew: false });
  return { status: 200 };
};

export const headBucket: Operation = async ({ request, store, region }) => {
  await store.bucket(request.bucket);
  return { status: 200, headers: { 'x-amz-bucket-region': region } };
};

export const getLocation: Operation = async ({ request, store, region }) => {
  await store.bucket(request.bucket);
  const place = region === 'us-east-1' ? '' : region;
  return xmlAnswer(xml('LocationConstraint', {}).replace('></LocationConstraint>', `>${place}</LocationConstraint>`));
};

export const deleteBucket: Operation = async ({ request, store }) => {
  await store.deleteBucket(request.bucket);
  return { status: 204 };
};

export const listObjectsV2: Operation = async ({ request, store }) => {
  if (request.query.get('list-type') !== '2') {
    throw new StoreFault('NotImplemented', 'the first version of ListObjects is not served: use list-type=2');
  }
  return xmlAnswer(listObjects(request.bucket, await store.entries(request.bucket), request.query));
};

export const deleteObjects: Operation = async ({ request, store, signed }) => {
  const body = await readText(request, signed);
  await store.bucket(request.bucket);
  const keys = elementsOf(body, 'Object').map((object) => textOf(object, 'Key') ?? '');
  if (keys.length === 0 || keys.length > 1000 || keys.includes('')) {
    throw new StoreFault('MalformedXML', 'the document must name 1 to 1000 keys');
  }
  for (const key of keys) await store.deleteEntry(request.bucket, key);
  const isQuiet = textOf(body, 'Quiet') === 'true';
  return xmlAnswer(xml('DeleteResult', { Deleted: isQuiet ? [] : keys.map((Key) => ({ Key })) }));
};

// ListObjectsV2: keys in byte order, in pages, grouped by a delimiter. Pure.

type Query = ReadonlyMap<string, string>;

interface Item {
  /** The key, or the common prefix of several. */
  readonly name: string;
  readonly entry?: Entry;
}

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Keys under the prefix; those with the same part up to the delimiter are grouped into one item. */
const fold = (entries: readonly Entry[], prefix: string, delimiter: string): readonly Item[] => {
  const items = new Map<string, Item>();
  for (const entry of entries) {
    if (!entry.key.startsWith(prefix)) continue;
    const at = delimiter === '' ? -1 : entry.key.indexOf(delimiter, prefix.length);
    const name = at === -1 ? entry.key : entry.key.slice(0, at + delimiter.length);
    if (at !== -1) items.set(`/${name}`, { name });
    else items.set(`=${name}`, { name, entry });
  }
  return [...items.values()].sort((a, b) => byBytes(a.name, b.name));
};

const countOf = (query: Query): number => {
  const text = query.get('max-keys') ?? '1000';
  if (!/^\d{1,9}$/.test(text)) throw new StoreFault('InvalidArgument', 'max-keys is no number');
  return Math.min(1000, Number(text));
};

const tokenOf = (name: string): string => Buffer.from(name).toString('base64url');

const contentOf = (entry: Entry, encode: (text: string) => string): XmlElements => ({
  Key: encode(entry.key),
  LastModified: entry.modified,
  ETag: `"${entry.etag}"`,
  Size: entry.size,
  StorageClass: 'STANDARD',
});

const listObjects = (bucket: string, entries: readonly Entry[], query: Query): string => {
  const prefix = query.get('prefix') ?? '';
  const delimiter = query.get('delimiter') ?? '';
  const most = countOf(query);
  const token = query.get('continuation-token');
  const after = token === undefined ? '' : Buffer.from(token, 'base64url').toString();
  const startAfter = query.get('start-after') ?? '';
  const encode = query.get('encoding-type') === 'url' ? encodeURIComponent : (text: string) => text;
  const waiting = fold(
    entries.filter(({ key }) => byBytes(key, startAfter) > 0),
    prefix,
    delimiter,
  ).filter(({ name }) => byBytes(name, after) > 0);
  const page = waiting.slice(0, most);
  const last = page.at(-1);
  const isTruncated = waiting.length > page.length && last !== undefined;
  return xml('ListBucketResult', {
    Name: bucket,
    Prefix: encode(prefix),
    Delimiter: delimiter === '' ? undefined : encode(delimiter),
    MaxKeys: most,
    EncodingType: query.get('encoding-type'),
    KeyCount: page.length,
    IsTruncated: isTruncated,
    ContinuationToken: token,
    StartAfter: query.get('start-after'),
    NextContinuationToken: isTruncated ? tokenOf(last.name) : undefined,
    Contents: page.flatMap(({ entry }) => (entry === undefined ? [] : [contentOf(entry, encode)])),
    CommonPrefixes: page.flatMap(({ name, entry }) => (entry === undefined ? [{ Prefix: encode(name) }] : [])),
  });
};
