// Brings the disks of a bundle into a bucket, one object each, with SHA256SUMS beside them. An object is there once all of it was compared.
import { createHash } from 'node:crypto';
import { type ReadBundle, requireNames } from '#cli/bundle/check.ts';
import { openBucket } from '#cli/bundle/access.ts';
import { diskBytes, fileNameOf } from '#cli/bundle/disk-bytes.ts';
import { type BundledImage, type Disk, refusal } from '#cli/bundle/layout.ts';
import type { RegistryLoad } from '#cli/bundle/to-registry.ts';
import type { LoadState } from '#cli/bundle/state.ts';
import type { S3Client } from '#shared/clients/s3/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { readWhole } from '#shared/runtime/read-bytes.ts';
import { type BackOffOptions, withBackOff } from '#shared/transfer/back-off.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

interface Place {
  readonly bucket: string;
  readonly prefix: string;
}

export const isBucketTarget = (target: string): boolean => /^s3:\/\/./i.test(target);

/** Throws InvalidInput. */
export const bucketOf = (target: string): Place => {
  const [, bucket, path = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]+)(?:\/(.*))?$/i.exec(target) ?? [];
  if (bucket === undefined) throw new InvalidInput(`${target} is not a bucket: write s3://<bucket>[/<prefix>]`);
  const trimmed = path.replace(/\/+$/, '');
  return { bucket, prefix: trimmed === '' ? '' : `${trimmed}/` };
};

/** Parts have 16 MiB, and more where there would be too many of them. */
const leastPart = 16 * 1024 * 1024;
const mostParts = 9000;
export const partBytesOf = (size: number): number => Math.max(leastPart, Math.ceil(size / mostParts));

const nameOf = (image: BundledImage): string => {
  const extension = /\.[a-z0-9]{1,8}$/i.exec(fileNameOf(image))?.[0] ?? '.img';
  return `${image.version ?? image.name}${extension}`;
};

const isAbsent = (error: unknown): boolean => error instanceof S3Failure && error.code === 'ObjectNotFound';

interface Writing {
  readonly s3: S3Client;
  readonly bucket: string;
  readonly key: string;
  readonly state: LoadState;
  readonly load: Pick<RegistryLoad, 'signal' | 'say' | 'onProgress'>;
}

async function* partsOf(bytes: AsyncIterable<Buffer>, partBytes: number): AsyncGenerator<Buffer, void, undefined> {
  let held: Buffer[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.length;) {
      const piece = chunk.subarray(at, at + partBytes - length);
      held.push(piece);
      length += piece.length;
      at += piece.length;
      if (length < partBytes) continue;
      yield Buffer.concat(held);
      held = [];
      length = 0;
    }
  }
  if (length > 0) yield Buffer.concat(held);
}

const retrying = <T>(writing: Writing, work: () => Promise<T>): Promise<T> => {
  const { signal, say } = writing.load;
  const onRetry: BackOffOptions['onRetry'] = (error, waitMs) =>
    say(`${writing.key}: ${messageOf(error)}; retrying in ${Math.ceil(waitMs / 1000)} s`);
  return withBackOff({ retries: 8, signal, onRetry }, work);
};

/** Parts that an earlier load sent are read and compared again, and not sent. */
const sendParts = async (writing: Writing, uploadId: string, bytes: AsyncIterable<Buffer>, disk: Disk) => {
  const { s3, bucket, key, state, load } = writing;
  const sent = [...(state.get(key)?.etags ?? [])];
  const etags: string[] = [];
  const hash = createHash('sha256');
  let done = 0;
  for await (const body of partsOf(bytes, partBytesOf(disk.size))) {
    hash.update(body);
    const sha256 = createHash('sha256').update(body).digest('hex');
    const number = etags.length + 1;
    const part = { bucket, key, uploadId, number, body, sha256, signal: load.signal };
    const etag = sent[number - 1] ?? (await retrying(writing, () => s3.multipart.putPart(part)));
    etags.push(etag);
    await state.set(key, { id: uploadId, of: disk.sha256, etags: sent.length > etags.length ? sent : etags });
    load.onProgress(key, (done += body.length), disk.size);
  }
  if (hash.digest('hex') !== disk.sha256) throw refusal(`the bundle changed while ${key} was sent: load it again`);
  return etags;
};

/** An upload that was begun for another disk is given up: a store puts together whatever parts it has. */
const begin = async (writing: Writing, { sha256 }: Disk): Promise<string> => {
  const { s3, bucket, key, state } = writing;
  const before = state.get(key);
  const pending = before === undefined ? [] : await s3.multipart.list(bucket, key);
  const isPending = pending.some(({ uploadId }) => uploadId === before?.id);
  if (before !== undefined && isPending) {
    if (before.of === sha256) return before.id;
    await retrying(writing, () => s3.multipart.abort({ bucket, key, uploadId: before.id }));
  }
  const uploadId = await retrying(writing, () => s3.multipart.begin({ bucket, key }));
  await state.set(key, { id: uploadId, of: sha256 });
  return uploadId;
};

const writeDisk = async (writing: Writing, bytes: () => AsyncIterable<Buffer>, disk: Disk): Promise<void> => {
  const { s3, bucket, key, state } = writing;
  const uploadId = await begin(writing, disk);
  const etags = await sendParts(writing, uploadId, bytes(), disk);
  await retrying(writing, () => s3.multipart.complete({ bucket, key, uploadId, etags }));
  await state.set(key, undefined);
};

type Sums = Map<string, string>;

const readSums = async (s3: S3Client, { bucket, prefix }: Place): Promise<Sums> => {
  const sums: Sums = new Map();
  try {
    const { body } = await s3.get({ bucket, key: `${prefix}SHA256SUMS` });
    for (const line of (await readWhole(body)).toString('utf8').split('\n')) {
      const [, hex = '', name = ''] = /^([0-9a-f]{64})[ *]{2}(\S+)$/.exec(line) ?? [];
      if (name !== '') sums.set(name, hex);
    }
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
  return sums;
};

/** Digests of what SHA256SUMS lists and is there. */
const hasObject = async (s3: S3Client, place: Place, name: string, size: number): Promise<boolean> => {
  try {
    return (await s3.head({ bucket: place.bucket, key: `${place.prefix}${name}` })).size === size;
  } catch (error) {
    if (isAbsent(error)) return false;
    throw error;
  }
};

const requireDisks = ({ document }: ReadBundle, sums: Sums): void => {
  for (const { name, disk, leftOut } of document.images) {
    const isOut = disk === undefined || leftOut.includes(disk.layer);
    if (isOut && ![...sums.values()].includes(disk?.sha256 ?? ''))
      throw refusal(`the disk of ${name} is left out of this bundle, and SHA256SUMS of the target lists no such disk`);
  }
};

type BucketLoad = Pick<RegistryLoad, 'bundle' | 'state' | 'signal' | 'say' | 'onProgress'> & {
  readonly s3: S3Client;
  readonly place: Place;
};

/** Another load may have written it meanwhile. */
const writeSums = async (s3: S3Client, place: Place, own: Sums): Promise<void> => {
  const sums = [...(await readSums(s3, place)), ...own];
  const lines = [...new Map(sums)].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, hex]) => `${hex}  ${name}\n`);
  await s3.put({ bucket: place.bucket, key: `${place.prefix}SHA256SUMS`, body: Buffer.from(lines.join('')) });
};

/** Throws an AppError; another load resumes where this one ended. */
export const writeDisks = async ({ bundle, s3, place, state, ...load }: BucketLoad): Promise<void> => {
  const { images } = bundle.document;
  requireNames(bundle, nameOf);
  const sums = await readSums(s3, place);
  requireDisks(bundle, sums);
  const own: Sums = new Map();
  for (const image of images) {
    const { disk, leftOut } = image;
    if (disk === undefined || leftOut.includes(disk.layer)) continue;
    const name = nameOf(image);
    own.set(name, disk.sha256);
    if (sums.get(name) === disk.sha256 && (await hasObject(s3, place, name, disk.size))) continue;
    const key = `${place.prefix}${name}`;
    const read = () => diskBytes(bundle, image, { from: 0, signal: load.signal });
    await writeDisk({ s3, bucket: place.bucket, key, state, load }, read, disk);
  }
  await writeSums(s3, place, own);
  await state.clear();
};

/** Returns the objects. */
export const loadToBucket = async ({ target, values, ...load }: RegistryLoad): Promise<readonly string[]> => {
  const place = bucketOf(target);
  const { s3, close } = await openBucket(values);
  try {
    await writeDisks({ ...load, s3, place });
    return load.bundle.document.images.map((image) => `s3://${place.bucket}/${place.prefix}${nameOf(image)}`);
  } finally {
    await close();
  }
};
