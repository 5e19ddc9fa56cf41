// Brings the images of a bundle into a registry: blobs that it lacks, then images by their digests, what signs them, and the tags last.
import type { ReadBundle } from '#cli/bundle/check.ts';
import { type OpenRegistry, openRegistry } from '#cli/bundle/access.ts';
import { readSmall } from '#cli/bundle/archive.ts';
import { type BundledImage, type Listed, indexType, refName, refusal } from '#cli/bundle/layout.ts';
import type { LoadState } from '#cli/bundle/state.ts';
import type { Values } from '#cli/command.ts';
import type { BlobUpload } from '#shared/clients/registry/push.ts';
import type { Descriptor, IndexEntry } from '#shared/clients/registry/manifest.ts';
import { type Reference, formatReference, parseReference } from '#shared/clients/registry/reference.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';
import {
  LostUpload,
  type BlobSending,
  chunksOf,
  commit,
  sendChunk,
  withRetries,
} from '#shared/transfer/export/to-registry.ts';

export interface RegistryLoad {
  readonly bundle: ReadBundle;
  /** `oci://host[:port][/prefix]`. */
  readonly target: string;
  readonly values: Values;
  readonly state: LoadState;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
  readonly onProgress: (name: string, done: number, size: number) => void;
}

export const isRegistryTarget = (target: string): boolean => /^(oci|docker):\/\/./.test(target);

/** Where an image goes. Throws InvalidInput. */
export const placeOf = (target: string, { name }: Pick<BundledImage, 'name'>): Reference => {
  const image = parseReference(`${target.replace(/\/+$/, '')}/${name}`);
  if (image.tag !== undefined || image.digest !== undefined)
    throw new InvalidInput(
      `${target} is not a place for several images: write oci://host[:port]/prefix, without a tag`,
    );
  return image;
};

/** Uploads of one blob that may be lost. */
const mostLost = 3;

const begin = async (sending: BlobSending, before: string | undefined): Promise<BlobUpload> => {
  if (before !== undefined && URL.canParse(before)) {
    const resumed = await sending.pusher.look({ url: new URL(before), offset: 0 }).catch(() => undefined);
    if (resumed !== undefined) return resumed;
  }
  return withRetries(sending, () => sending.pusher.begin());
};

/** Resumes where an earlier load was interrupted. Reads the next chunk while one is sent. */
const sendBlob = async (
  load: RegistryLoad,
  sending: BlobSending,
  { digest, size }: Descriptor,
  key: string,
  name: string,
) => {
  const { bundle, state, onProgress } = load;
  let upload = await begin(sending, state.get(key)?.id);
  let sent = Promise.resolve(upload);
  const settle = async (): Promise<void> => {
    upload = await sent;
    onProgress(name, upload.offset, size);
    await state.set(key, { id: upload.url.href });
  };
  try {
    if (upload.offset > size) throw new LostUpload(`it has ${upload.offset} bytes of ${size}`);
    for await (const chunk of chunksOf(bundle.archive.read(digest, upload.offset))) {
      sending.signal.throwIfAborted();
      await settle();
      sent = sendChunk(sending, upload, chunk);
      // Awaited with the next chunk.
      sent.catch(() => undefined);
    }
    await settle();
    await commit(sending, upload, digest);
  } catch (error) {
    // What arrived stays noted.
    await settle().catch(() => undefined);
    throw error;
  }
};

const pushBlob = async (load: RegistryLoad, sending: BlobSending, blob: Descriptor, name: string): Promise<void> => {
  if (await withRetries(sending, () => sending.pusher.hasBlob(blob.digest))) return;
  const key = `${name}/${blob.digest}`;
  for (let tries = 1; ; tries += 1) {
    try {
      await sendBlob(load, sending, blob, key, name);
      return await load.state.set(key, undefined);
    } catch (error) {
      // A registry that has other bytes than were sent refuses the digest: once more from the start.
      if (!(error instanceof LostUpload) || tries >= mostLost) throw error;
      await load.state.set(key, undefined);
    }
  }
};

const partsOf = ({ manifests }: ReadBundle, digest: string): readonly Descriptor[] => {
  const manifest = manifests.get(digest);
  return manifest?.is === 'image' ? [...manifest.image.layers, manifest.image.config] : [];
};

const subjectOf = (bytes: Uint8Array): string | undefined =>
  (JSON.parse(Buffer.from(bytes).toString('utf8')) as { readonly subject?: { readonly digest?: string } }).subject
    ?.digest;

interface Evidence {
  readonly line: Listed;
  readonly bytes: Buffer;
  readonly tag: string | undefined;
}

/** Signatures and attestations of an image: by their tag, or by what they refer to. */
const evidenceOf = async (
  { archive, listed }: ReadBundle,
  { name, digest }: BundledImage,
): Promise<readonly Evidence[]> => {
  const found: Evidence[] = [];
  const prefix = `${name}:${digest.replace(':', '-')}.`;
  for (const line of listed) {
    const named = line.annotations?.[refName];
    const bytes = await readSmall(archive, line.digest);
    if (named?.startsWith(prefix) === true) found.push({ line, bytes, tag: named.slice(name.length + 1) });
    else if (subjectOf(bytes) === digest) found.push({ line, bytes, tag: undefined });
  }
  return found;
};

/** In a registry without an API for referrers, the client that pushes them maintains their list under a tag. */
const listReferrers = async (
  { client, pusher }: OpenRegistry,
  image: Reference,
  digest: string,
  {
    own,
    retrying,
  }: { readonly own: readonly Evidence[]; readonly retrying: <T>(work: () => Promise<T>) => Promise<T> },
) => {
  if (own.length === 0) return;
  const there: readonly IndexEntry[] = await retrying(() => client.referrers({ ...image, digest }));
  const missing = own.filter(({ line }) => !there.some((one) => one.digest === line.digest));
  if (missing.length === 0) return;
  const manifests = [
    ...there,
    ...missing.map(({ line: { mediaType, digest: referrer, size }, bytes }) => ({
      mediaType,
      digest: referrer,
      size,
      artifactType: (JSON.parse(bytes.toString('utf8')) as { readonly artifactType?: string }).artifactType,
    })),
  ];
  const index = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests }));
  await retrying(() => pusher.putManifest(digest.replace(':', '-'), index, indexType));
};

const mediaTypeOf = ({ listed }: ReadBundle, digest: string): string =>
  listed.find((line) => line.digest === digest)?.mediaType ?? '';

const loadImage = async (load: RegistryLoad, open: OpenRegistry, image: BundledImage): Promise<void> => {
  const { bundle, signal, say, target } = load;
  const { pusher } = open;
  const { name, digest, tags } = image;
  const onRetry = (error: unknown, waitMs: number): void =>
    say(`${name}: ${messageOf(error)}; retrying in ${Math.ceil(waitMs / 1000)} s`);
  const sending: BlobSending = { pusher, signal, backOff: { retries: 8, onRetry } };
  const evidence = await evidenceOf(bundle, image);
  for (const line of [...evidence.map((one) => one.line.digest), digest])
    for (const part of partsOf(bundle, line))
      if (bundle.archive.blobs.has(part.digest)) await pushBlob(load, sending, part, name);
  const bytes = await readSmall(bundle.archive, digest);
  const put = (under: string): Promise<void> =>
    withRetries(sending, () => pusher.putManifest(under, bytes, mediaTypeOf(bundle, digest)));
  await put(digest);
  // Nobody finds the image by a tag before it is signed.
  for (const { line, bytes: own, tag } of evidence)
    await withRetries(sending, () => pusher.putManifest(tag ?? line.digest, own, line.mediaType));
  const place = placeOf(target, image);
  const retrying = <T>(work: () => Promise<T>): Promise<T> => withRetries(sending, work);
  await listReferrers(open, place, digest, { own: evidence.filter(({ tag }) => tag === undefined), retrying });
  for (const tag of tags) {
    const before = await retrying(() => pusher.find(tag));
    if (before?.digest === digest) continue;
    await put(tag);
    const moved = before?.digest;
    if (moved !== undefined) say(`${formatReference({ ...place, tag })} was ${moved}, and is ${digest} now`);
  }
};

/** What a delta leaves out must be there. Makes nothing. */
const requireLeftOut = async (open: OpenRegistry, image: BundledImage, place: Reference): Promise<void> => {
  for (const digest of image.leftOut)
    if (!(await open.pusher.hasBlob(digest)))
      throw refusal(
        `${formatReference(place)} lacks ${digest}, which this bundle leaves out: it was saved for a target that has it`,
      );
};

/** Milliseconds that a request may take to its end after an interruption. */
const lingerMs = 20_000;

/** Registries drop an upload of which a chunk was cut: the one that is on its way is completed. */
const lingering = (signal: AbortSignal): AbortSignal => {
  const late = new AbortController();
  const end = (): void => void setTimeout(() => late.abort(signal.reason), lingerMs).unref();
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  return late.signal;
};

/** Returns the references that were made. Throws an AppError; another load resumes where this one ended. */
export const loadToRegistry = async (load: RegistryLoad): Promise<readonly string[]> => {
  const { bundle, target, values, signal, state } = load;
  const opened = new Map<string, OpenRegistry>();
  const late = lingering(signal);
  try {
    for (const image of bundle.document.images) {
      const place = placeOf(target, image);
      const open = opened.get(image.name) ?? (await openRegistry(place, { values, signal: late }));
      opened.set(image.name, open);
      await requireLeftOut(open, image, place);
    }
    for (const image of bundle.document.images) {
      const open = opened.get(image.name);
      if (open !== undefined) await loadImage(load, open, image);
    }
    await state.clear();
    return bundle.document.images.flatMap((image) =>
      image.tags.map((tag) => `docker://${formatReference({ ...placeOf(target, image), tag })}`),
    );
  } finally {
    for (const open of opened.values()) await open.close();
  }
};
