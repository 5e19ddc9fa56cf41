// Conditional and ranged requests, according to RFC 9110 and S3. Pure.
import type { Condition } from '#local-cluster/object-store/store.ts';
import type { Entry } from '#local-cluster/object-store/disk.ts';
import { StoreFault } from '#local-cluster/object-store/fault.ts';

type Headers = Readonly<Record<string, string>>;

const matches = (list: string, { etag }: Entry): boolean =>
  list.split(',').some((tag) => tag.trim() === '*' || tag.trim().replaceAll('"', '') === etag);

/** Dates in headers have no fractions of a second. */
const seconds = (date: string): number => Math.floor(Date.parse(date) / 1000);

const failed = (name: string): StoreFault =>
  new StoreFault('PreconditionFailed', 'the object is not the one that was asked for', {
    details: { Condition: name },
  });

/** Whether the client already has it (304). Throws PreconditionFailed. `prefix`: for the source of a copy. */
export const checkRead = (headers: Headers, entry: Entry, prefix = ''): 'send' | 'unchanged' => {
  const ifMatch = headers[`${prefix}if-match`];
  const since = headers[`${prefix}if-unmodified-since`];
  if (ifMatch !== undefined && !matches(ifMatch, entry)) throw failed('If-Match');
  if (ifMatch === undefined && since !== undefined && seconds(entry.modified) > seconds(since)) {
    throw failed('If-Unmodified-Since');
  }
  const ifNoneMatch = headers[`${prefix}if-none-match`];
  const modified = headers[`${prefix}if-modified-since`];
  if (ifNoneMatch !== undefined) return matches(ifNoneMatch, entry) ? 'unchanged' : 'send';
  return modified !== undefined && seconds(entry.modified) <= seconds(modified) ? 'unchanged' : 'send';
};

/** For a write: If-None-Match: * and If-Match. */
export const writeCondition =
  (headers: Headers): Condition =>
  (present) => {
    const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers;
    if (ifNoneMatch !== undefined && present !== undefined && matches(ifNoneMatch, present))
      throw failed('If-None-Match');
    if (ifMatch === undefined) return;
    if (present === undefined) throw new StoreFault('NoSuchKey', 'the object does not exist');
    if (!matches(ifMatch, present)) throw failed('If-Match');
  };

export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** First and last byte of `bytes=<from>-<to>`, one of which may be empty. */
const boundsOf = (from: string, to: string, size: number): ByteRange =>
  from === ''
    ? { first: Math.max(0, size - Number(to)), last: size - 1 }
    : { first: Number(from), last: to === '' ? size - 1 : Math.min(Number(to), size - 1) };

/** `undefined`: the whole object, also for an invalid header. Throws InvalidRange. */
export const parseRange = (headers: Headers, entry: Entry): ByteRange | undefined => {
  const { range = '', 'if-range': ifRange } = headers;
  const [whole, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(range) ?? [];
  if (whole === undefined || whole === 'bytes=-') return undefined;
  if (ifRange !== undefined && ifRange.replaceAll('"', '') !== entry.etag) return undefined;
  const { first, last } = boundsOf(from, to, entry.size);
  if (first < entry.size && first <= last) return { first, last };
  throw new StoreFault('InvalidRange', 'the range lies outside of the object', {
    details: { ActualObjectSize: String(entry.size) },
    headers: { 'content-range': `bytes */${entry.size}` },
  });
};
