// Writes the body of a request to a file, and verifies every length, digest and signature of the request.
import { open, rm } from 'node:fs/promises';
import {
  type ChecksumAlgorithm,
  type Digest,
  checksumAlgorithms,
  createDigest,
  toHex,
} from '#local-cluster/object-store/checksum.ts';
import { type Chunked, decodeChunked } from '#local-cluster/object-store/chunked.ts';
import { StoreFault } from '#local-cluster/object-store/fault.ts';
import type { StoreRequest } from '#local-cluster/object-store/request.ts';
import type { Signed } from '#local-cluster/object-store/signature.ts';

export interface Received {
  readonly size: number;
  /** Hex. */
  readonly md5: string;
  /** The verified checksum of the client. */
  readonly checksum?: { readonly algorithm: ChecksumAlgorithm; readonly value: string } | undefined;
}

/** Enough for ten thousand parts, or a thousand keys. */
const mostTextBytes = 2 ** 21;

const prefix = 'x-amz-checksum-';
/** Headers with this prefix that are not checksums. */
const aboutChecksums = new Set(['algorithm', 'mode', 'type']);

/** The checksum of the request, in a header or a trailer. */
export const announced = ({ headers }: StoreRequest): ChecksumAlgorithm | undefined => {
  const inTrailer = headers['x-amz-trailer']?.toLowerCase();
  const names = [...Object.keys(headers), ...(inTrailer === undefined ? [] : [inTrailer])];
  const [name] = names
    .filter((header) => header.startsWith(prefix))
    .map((header) => header.slice(prefix.length))
    .filter((algorithm) => !aboutChecksums.has(algorithm));
  if (name === undefined) return undefined;
  const known = checksumAlgorithms.find((algorithm) => algorithm === name);
  if (known === undefined) throw new StoreFault('NotImplemented', `checksums of kind ${name} are not checked here`);
  return known;
};

const unchunked = (bytes: AsyncIterable<Buffer>): Chunked => ({ bytes, trailers: new Map() });

const bytesOf = ({ headers, body }: StoreRequest, signed: Signed | undefined): Chunked => {
  const how = headers['x-amz-content-sha256'] ?? '';
  if (!how.startsWith('STREAMING-')) return unchunked(body);
  if (how === 'STREAMING-UNSIGNED-PAYLOAD-TRAILER') return decodeChunked(body, undefined);
  if (how === 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD') return decodeChunked(body, signed);
  throw new StoreFault('NotImplemented', `a body sent as ${how} is not read here`);
};

const expectedLength = ({ headers }: StoreRequest): number | undefined => {
  const text = headers['x-amz-decoded-content-length'] ?? headers['content-length'];
  return text === undefined ? undefined : Number(text);
};

interface Found {
  readonly size: number;
  readonly digests: ReadonlyMap<string, string>;
  readonly trailers: ReadonlyMap<string, string>;
}

const checkLength = (request: StoreRequest, size: number): void => {
  const length = expectedLength(request);
  if (length === undefined || length === size) return;
  throw new StoreFault('IncompleteBody', `the body has ${size} bytes and was announced with ${length}`);
};

/** The digests in the request itself. */
const checkDigests = ({ headers }: StoreRequest, digests: Found['digests']): void => {
  const md5 = headers['content-md5'];
  if (md5 !== undefined && md5 !== digests.get('md5')) {
    throw new StoreFault('BadDigest', 'the body is not that of its content-md5');
  }
  if (isSignedPayload(headers) && headers['x-amz-content-sha256'] !== toHex(digests.get('sha256') ?? '')) {
    throw new StoreFault('XAmzContentSHA256Mismatch', 'the body is not that of its x-amz-content-sha256');
  }
};

const check = (request: StoreRequest, found: Found, algorithm: ChecksumAlgorithm | undefined): Received => {
  const { digests, size } = found;
  checkLength(request, size);
  checkDigests(request, digests);
  const md5 = toHex(digests.get('md5') ?? '');
  if (algorithm === undefined) return { size, md5 };
  const name = prefix + algorithm;
  const value = digests.get(algorithm) ?? '';
  if ((request.headers[name] ?? found.trailers.get(name)) !== value) {
    throw new StoreFault('BadDigest', `the body is not that of its ${name}`);
  }
  return { size, md5, checksum: { algorithm, value } };
};

const isSignedPayload = (headers: StoreRequest['headers']): boolean =>
  /^[0-9a-f]{64}$/.test(headers['x-amz-content-sha256'] ?? '');

const digestsFor = ({ headers }: StoreRequest, algorithm: ChecksumAlgorithm | undefined): Map<string, Digest> => {
  const isSigned = isSignedPayload(headers);
  const names = new Set<ChecksumAlgorithm | 'md5'>(['md5', ...(isSigned ? (['sha256'] as const) : [])]);
  if (algorithm !== undefined) names.add(algorithm);
  return new Map([...names].map((name) => [name, createDigest(name)]));
};

/** Writes and flushes the bytes to `path`; an invalid body leaves nothing there. */
export const receiveBody = async (
  request: StoreRequest,
  signed: Signed | undefined,
  path: string,
): Promise<Received> => {
  const algorithm = announced(request);
  const digests = digestsFor(request, algorithm);
  const { bytes, trailers } = bytesOf(request, signed);
  try {
    const size = await writeBytes(path, bytes, [...digests.values()]);
    const values = new Map([...digests].map(([name, digest]) => [name, digest.value()]));
    return check(request, { size, digests: values, trailers }, algorithm);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
};

/** Writes and flushes a new file; returns its length. */
export const writeBytes = async (
  path: string,
  bytes: AsyncIterable<Buffer>,
  digests: readonly Digest[],
): Promise<number> => {
  const file = await open(path, 'wx', 0o600);
  let size = 0;
  try {
    for await (const chunk of bytes) {
      for (const digest of digests) digest.update(chunk);
      await file.writeFile(chunk);
      size += chunk.length;
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return size;
};

/** The same without checksums, if they are not those of the body. */
export const withoutChecksums = (request: StoreRequest): StoreRequest => ({
  ...request,
  headers: Object.fromEntries(Object.entries(request.headers).filter(([name]) => !name.startsWith(prefix))),
});

/** A small body as text, verified like any other. */
export const readText = async (request: StoreRequest, signed: Signed | undefined): Promise<string> => {
  const algorithm = announced(request);
  const digests = digestsFor(request, algorithm);
  const { bytes, trailers } = bytesOf(request, signed);
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    size += chunk.length;
    if (size > mostTextBytes) throw new StoreFault('MalformedXML', 'the document is larger than 2 MiB');
    for (const digest of digests.values()) digest.update(chunk);
    parts.push(chunk);
  }
  const values = new Map([...digests].map(([name, digest]) => [name, digest.value()]));
  check(request, { size, digests: values, trailers }, algorithm);
  return Buffer.concat(parts).toString('utf8');
};
