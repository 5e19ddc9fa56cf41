// ListObjectsV2: keys in byte order, in pages, grouped by a delimiter. Pure.
import type { Entry } from '#local-cluster/object-store/disk.ts';
import { StoreFault } from '#local-cluster/object-store/fault.ts';
import { type XmlElements, xml } from '#local-cluster/object-store/xml.ts';

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

export const listObjects = (bucket: string, entries: readonly Entry[], query: Query): string => {
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
