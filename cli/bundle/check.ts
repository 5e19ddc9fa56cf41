// Whether a bundle is what it says: first which blobs its documents name, then each of them by its digest, and each disk by that of its file. All of this
// comes before anything is made of it.
import { createHash } from 'node:crypto';
import { type BundleArchive, readSmall } from '#cli/bundle/archive.ts';
import { createBundleClient, inBundle } from '#cli/bundle/client.ts';
import {
  type BundleDocument,
  type BundledImage,
  type Disk,
  type Listed,
  blobName,
  bundleType,
  damaged,
  reading,
  readDocument,
  readIndex,
  refusal,
} from '#cli/bundle/layout.ts';
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { type Descriptor, type Manifest, readManifest } from '#shared/clients/registry/manifest.ts';
import { createBackOff } from '#shared/transfer/back-off.ts';
import { findDisk } from '#shared/transfer/source/registry/disk.ts';
import { messageOf } from '#shared/runtime/errors.ts';

/** A bundle whose documents are consistent. Its other blobs are not compared yet. */
export interface ReadBundle {
  readonly archive: BundleArchive;
  readonly document: BundleDocument;
  /** Of the manifest of the document: signatures of all of the bundle are of this. */
  readonly digest: string;
  /** Lines of the index. */
  readonly listed: readonly Listed[];
  readonly manifests: ReadonlyMap<string, Manifest>;
  /** Reads it like a registry. */
  readonly client: RegistryClient;
}

/** Unpacked bytes of a layer besides its disk. */
const mostBesides = 64 * 1024 * 1024;

const notInside = ({ urls }: Descriptor): boolean => Array.isArray(urls) && urls.length > 0;

interface Naming {
  readonly archive: BundleArchive;
  readonly leftOut: ReadonlySet<string>;
  readonly named: Set<string>;
}

/** Takes note that a document names a blob, which must be there in this size. */
const name = ({ archive, leftOut, named }: Naming, descriptor: Descriptor, by: string): void => {
  const { digest, size } = descriptor;
  if (notInside(descriptor)) throw damaged(archive.path, `points outside: ${by} fetches ${digest} from another place`);
  const there = archive.blobs.get(digest);
  if (there === undefined) {
    if (leftOut.has(digest)) return;
    throw damaged(archive.path, `lacks ${digest}, which ${by} names`);
  }
  if (there.size !== size)
    throw damaged(archive.path, `has ${there.size} bytes in ${blobName(digest)}, and ${size} by ${by}`);
  named.add(digest);
};

const readManifests = async (naming: Naming, listed: readonly Listed[]): Promise<ReadonlyMap<string, Manifest>> => {
  const { archive } = naming;
  const manifests = new Map<string, Manifest>();
  for (const one of listed) {
    if (manifests.has(one.digest)) continue;
    name(naming, one, 'index.json');
    const bytes = await readSmall(archive, one.digest);
    manifests.set(one.digest, readManifest(bytes, one.digest, blobName(one.digest)));
  }
  for (const [digest, manifest] of manifests) {
    if (manifest.is !== 'image') continue;
    const { config, layers } = manifest.image;
    for (const descriptor of [config, ...layers]) name(naming, descriptor, `manifest ${digest}`);
  }
  return manifests;
};

const documentOf = async (
  archive: BundleArchive,
  listed: readonly Listed[],
): Promise<Pick<ReadBundle, 'digest' | 'document'>> => {
  const [artifact, second] = listed.filter(({ artifactType }) => artifactType === bundleType);
  if (artifact === undefined || second !== undefined)
    throw damaged(archive.path, 'has not one document of a bundle: it was made by something else');
  const manifest = readManifest(await readSmall(archive, artifact.digest), artifact.digest, 'the bundle');
  const body = manifest.is === 'image' ? manifest.image.layers[0]?.digest : undefined;
  const document = readDocument(await readSmall(archive, body ?? ''), `document ${body}`);
  return { digest: artifact.digest, document };
};

/** Images are the ones that the index lists, and indexes list the image that they stand for. */
const checkImage = ({ archive }: Naming, manifests: ReadonlyMap<string, Manifest>, image: BundledImage): void => {
  const { digest, indexDigest, disk } = image;
  const manifest = manifests.get(digest);
  if (manifest?.is !== 'image') throw damaged(archive.path, `has no image ${digest}, which ${image.name} should be`);
  const isLayer = disk === undefined || manifest.image.layers.some((layer) => layer.digest === disk.layer);
  if (!isLayer) throw damaged(archive.path, `has the disk of ${image.name} in another image`);
  if (disk === undefined && image.leftOut.length === 0)
    throw damaged(archive.path, `does not say which disk ${image.name} is`);
  const index = indexDigest === undefined ? undefined : manifests.get(indexDigest);
  const lists = index?.is === 'index' && index.entries.some((entry) => entry.digest === digest);
  if (indexDigest !== undefined && !lists)
    throw damaged(archive.path, `has no index ${indexDigest} that lists ${image.name}`);
};

/** Reads documents alone. Throws InvalidInput. */
export const readBundle = (archive: BundleArchive): Promise<ReadBundle> =>
  reading(archive.path, () => readAll(archive));

const readAll = async (archive: BundleArchive): Promise<ReadBundle> => {
  const listed = readIndex(archive.index);
  const { digest: own, document } = await documentOf(archive, listed);
  const leftOut = new Set(document.images.flatMap((image) => image.leftOut));
  const naming: Naming = { archive, leftOut, named: new Set() };
  const manifests = await readManifests(naming, listed);
  for (const image of document.images) checkImage(naming, manifests, image);
  const twice = document.images.find(({ digest, name: own }, at) =>
    document.images.slice(at + 1).some((other) => other.digest === digest && other.name === own),
  );
  if (twice !== undefined) throw damaged(archive.path, `has ${twice.name} twice`);
  for (const digest of archive.blobs.keys())
    if (!naming.named.has(digest)) throw damaged(archive.path, `has ${blobName(digest)}, which nothing names`);
  return { archive, document, digest: own, listed, manifests, client: createBundleClient(archive, listed) };
};

/** A registry takes several images of one name under their tags, and nothing else does. */
export const requireNames = ({ document: { images } }: ReadBundle, nameOf: (image: BundledImage) => string): void => {
  const names = images.map(nameOf);
  const twice = names.find((one, at) => names.indexOf(one) < at);
  if (twice !== undefined)
    throw refusal(`the bundle has several images that would be ${twice} there: save each into a bundle of its own`);
};

export interface Checking {
  readonly signal: AbortSignal;
  readonly onProgress: (doneBytes: number) => void;
}

/** The disk of an image of this client, from the layers that it has. Throws TransferError. */
export const inspectDisk = async (
  client: RegistryClient,
  layers: readonly Descriptor[],
  {
    signal,
    received,
    expected,
  }: { signal: AbortSignal; received: (bytes: number) => void; expected?: Disk | undefined },
): Promise<Disk> => {
  let layer = '';
  const noting: RegistryClient = {
    ...client,
    blob: (image, digest, offset) => {
      layer = digest;
      return client.blob(image, digest, offset);
    },
  };
  const mostUnpacked = expected === undefined ? undefined : expected.size + mostBesides;
  const found = await findDisk(
    {
      client: noting,
      image: inBundle,
      createBackOff: () => createBackOff({ retries: 0, signal, onRetry: () => undefined }),
      received,
      mostUnpacked,
    },
    layers,
  );
  const hash = createHash('sha256');
  try {
    if (expected !== undefined && found.size !== expected.size)
      throw refusal(`${found.name} has ${found.size} bytes, and ${expected.size} by the document of the bundle`);
    for await (const part of found.content) {
      signal.throwIfAborted();
      hash.update(part);
    }
  } finally {
    await found.content.return();
  }
  return { layer, file: found.name, size: found.size, sha256: hash.digest('hex') };
};

const isSame = (one: Disk, other: Disk): boolean =>
  one.layer === other.layer && one.file === other.file && one.size === other.size && one.sha256 === other.sha256;

/** Layers with a disk, which are compared as they are unpacked. */
const checkDisks = async (
  { archive, document, manifests, client }: ReadBundle,
  checked: Set<string>,
  check: Checking,
) => {
  let done = 0;
  const received = (bytes: number): void => check.onProgress((done += bytes));
  for (const { name: own, digest, disk, leftOut } of document.images) {
    const manifest = manifests.get(digest);
    if (disk === undefined || leftOut.includes(disk.layer) || manifest?.is !== 'image') continue;
    try {
      const found = await inspectDisk(client, manifest.image.layers, {
        signal: check.signal,
        received,
        expected: disk,
      });
      if (!isSame(found, disk)) throw refusal(`the disk ${found.file} is another one than its document says`);
      checked.add(disk.layer);
    } catch (error) {
      check.signal.throwIfAborted();
      throw damaged(archive.path, `is damaged in ${blobName(disk.layer)}, the disk of ${own}: ${messageOf(error)}`);
    }
  }
  return done;
};

/** Compares every byte. Throws InvalidInput, which says what is wrong and where. */
export const checkBundle = async (bundle: ReadBundle, check: Checking): Promise<void> => {
  const { archive, manifests } = bundle;
  const checked = new Set(manifests.keys());
  let done = await checkDisks(bundle, checked, check);
  for (const [digest, { size }] of archive.blobs) {
    if (checked.has(digest)) continue;
    const hash = createHash('sha256');
    for await (const part of archive.read(digest)) {
      check.signal.throwIfAborted();
      hash.update(part);
      check.onProgress((done += part.length));
    }
    const found = `sha256:${hash.digest('hex')}`;
    if (found !== digest)
      throw damaged(archive.path, `is damaged in ${blobName(digest)}: its ${size} bytes have digest ${found}`);
  }
};
