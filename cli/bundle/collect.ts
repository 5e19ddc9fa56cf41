// An image of a registry with everything that belongs to it, as it lies there: no byte of it is changed, so its digest and its signatures stay valid.
import { inspectDisk } from '#cli/bundle/check.ts';
import { type Disk, type Listed, mostDocumentBytes, refName, refusal } from '#cli/bundle/layout.ts';
import type { WantedImage } from '#cli/bundle/wanted.ts';
import type { BundleWriter } from '#cli/bundle/writer.ts';
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { type Descriptor, type Manifest, digestOf, selectPlatform } from '#shared/clients/registry/manifest.ts';
import { type Reference, formatReference } from '#shared/clients/registry/reference.ts';
import { RegistryFailure, readBody } from '#shared/clients/registry/refusal.ts';
import { createBackOff } from '#shared/transfer/back-off.ts';
import { manifestType } from '#shared/transfer/export/image-documents.ts';
import { bytesFrom } from '#shared/transfer/source/registry/layer.ts';

export interface Collecting {
  readonly writer: BundleWriter;
  /** Digests that the other side has. */
  readonly have: ReadonlySet<string>;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
  /** Bytes of one blob that are there. */
  readonly onProgress: (name: string, done: number, size: number) => void;
}

export interface Collected {
  readonly digest: string;
  readonly indexDigest?: string | undefined;
  readonly leftOut: readonly string[];
  readonly disk?: Disk | undefined;
  readonly listed: readonly Listed[];
}

type Image = Extract<Manifest, { readonly is: 'image' }>;

/** Retries of one blob that bring nothing. */
const retries = 8;

/** Of one signature or attestation. Others may hang anything on an image. */
const mostEvidence = 64;

const typeOf = (bytes: Uint8Array): string => {
  const { mediaType } = JSON.parse(Buffer.from(bytes).toString('utf8')) as { readonly mediaType?: unknown };
  return typeof mediaType === 'string' ? mediaType : manifestType;
};

const lineOf = ({ digest, bytes }: Pick<Manifest, 'digest' | 'bytes'>, name?: string): Listed => ({
  mediaType: typeOf(bytes),
  digest,
  size: bytes.length,
  ...(name === undefined ? {} : { annotations: { [refName]: name } }),
});

const absent = (error: unknown): undefined => {
  if (error instanceof RegistryFailure && (error.code === 'ImageNotFound' || error.code === 'InvalidImage'))
    return undefined;
  throw error;
};

/** The image itself, and the index that was named. */
const choose = async (client: RegistryClient, image: Reference, architecture: string) => {
  const named = await client.manifest(image);
  if (named.is === 'image') return { chosen: named, index: undefined };
  const where = formatReference(image);
  const { digest } = selectPlatform(named.entries, architecture, where);
  const chosen = await client.manifest({ ...image, digest });
  if (chosen.is === 'image') return { chosen, index: named };
  throw refusal(`${where} is an index of indexes: name one of the images in it`);
};

const addLayer = (
  client: RegistryClient,
  image: Reference,
  layer: Descriptor,
  name: string,
  collecting: Collecting,
) => {
  const { writer, signal, say, onProgress } = collecting;
  const onRetry = (error: unknown, waitMs: number): void =>
    say(
      `${name}: ${error instanceof Error ? error.message : String(error)}; retrying in ${Math.ceil(waitMs / 1000)} s`,
    );
  return writer.add({
    digest: layer.digest,
    size: layer.size,
    read: async function* read(from) {
      let done = from;
      const context = {
        client,
        image,
        createBackOff: () => createBackOff({ retries, signal, onRetry }),
        received: () => {},
      };
      for await (const part of bytesFrom(context, layer, from)) {
        signal.throwIfAborted();
        yield part;
        onProgress(name, (done += part.length), layer.size);
      }
    },
  });
};

/** Manifests under the tags of cosign, and artifacts that refer to the image. */
const evidenceOf = async (client: RegistryClient, image: Reference, digest: string) => {
  const { host, repository } = image;
  const found: { readonly manifest: Image; readonly tag?: string }[] = [];
  for (const kind of ['sig', 'att']) {
    const tag = `${digest.replace(':', '-')}.${kind}`;
    const manifest = await client.manifest({ host, repository, tag }).catch(absent);
    if (manifest?.is === 'image') found.push({ manifest, tag });
  }
  const referrers = await client.referrers({ host, repository, digest });
  for (const { digest: referrer } of referrers.slice(0, mostEvidence)) {
    const manifest = await client.manifest({ host, repository, digest: referrer }).catch(absent);
    const isKnown = found.some((one) => one.manifest.digest === manifest?.digest);
    if (manifest?.is === 'image' && !isKnown) found.push({ manifest });
  }
  return found;
};

const addSmall = async (
  client: RegistryClient,
  image: Reference,
  { digest, size }: Descriptor,
  writer: BundleWriter,
) => {
  if (writer.blobs.has(digest)) return;
  if (size > mostDocumentBytes)
    throw refusal(`${digest} of ${formatReference(image)} has ${size} bytes, which is too large`);
  const bytes = await readBody(await client.blob(image, digest, 0), `blob ${digest}`);
  if (digestOf(bytes) !== digest) throw refusal(`${digest} of ${formatReference(image)} arrived with another digest`);
  await writer.addBytes(bytes);
};

const addEvidence = async (
  client: RegistryClient,
  image: Reference,
  { name, digest, collecting: { writer, say } }: { name: string; digest: string; collecting: Collecting },
): Promise<readonly Listed[]> => {
  const listed: Listed[] = [];
  for (const { manifest, tag } of await evidenceOf(client, image, digest)) {
    const parts = [manifest.image.config, ...manifest.image.layers];
    if (parts.some(({ size }) => size > mostDocumentBytes)) {
      say(`${name}: left out ${manifest.digest}, which refers to it: it is larger than a signature or an attestation`);
      continue;
    }
    for (const part of parts) await addSmall(client, image, part, writer);
    await writer.addBytes(manifest.bytes);
    listed.push(lineOf(manifest, tag === undefined ? undefined : `${name}:${tag}`));
  }
  return listed;
};

/** The disk that was added; `undefined`: its layer is left out, unread. */
const diskIn = async (
  { digest, image: { layers } }: Image,
  leftOut: string[],
  { writer, signal, have }: Collecting,
): Promise<Disk | undefined> => {
  if (leftOut.length > 0) return undefined;
  const blob: RegistryClient['blob'] = (_, wanted, offset) =>
    Promise.resolve({
      status: 206,
      headers: {},
      body: writer.read(wanted, offset),
      pour: () => Promise.resolve(),
      discard: () => {},
    });
  const nothing = (): never => {
    throw refusal(`${digest} is read from the bundle alone`);
  };
  const local: RegistryClient = { blob, head: nothing, manifest: nothing, tags: nothing, referrers: nothing };
  const disk = await inspectDisk(local, layers, { signal, received: () => {} });
  if (have.has(`sha256:${disk.sha256}`) && layers.at(-1)?.digest === disk.layer) {
    await writer.dropLast(disk.layer);
    leftOut.push(disk.layer);
  }
  return disk;
};

export const collectImage = async (
  client: RegistryClient,
  { name, origin, tags }: WantedImage,
  collecting: Collecting & { readonly architecture: string },
): Promise<Collected> => {
  if (origin.is !== 'registry') throw refusal(`${name} is not in a registry`);
  const { image } = origin;
  const { writer, have } = collecting;
  const { chosen, index } = await choose(client, image, origin.architecture ?? collecting.architecture);
  const { digest } = chosen;
  const leftOut: string[] = [];
  for (const layer of chosen.image.layers) {
    if (have.has(layer.digest) || have.has(digest)) leftOut.push(layer.digest);
    else await addLayer(client, image, layer, name, collecting);
  }
  const disk = await diskIn(chosen, leftOut, collecting);
  await addSmall(client, image, chosen.image.config, writer);
  await writer.addBytes(chosen.bytes);
  const listed = tags.map((tag) => lineOf(chosen, `${name}:${tag}`));
  listed.push(...(await addEvidence(client, image, { name, digest, collecting })));
  const whole = index ?? (await indexOf(client, origin));
  if (whole === undefined || whole.digest === digest) return { digest, leftOut, disk, listed };
  await writer.addBytes(whole.bytes);
  listed.push(lineOf(whole), ...(await addEvidence(client, image, { name, digest: whole.digest, collecting })));
  return { digest, indexDigest: whole.digest, leftOut, disk, listed };
};

/** The index that a cron saw; by now the registry may have lost it. */
const indexOf = async (
  client: RegistryClient,
  { image, indexDigest }: Extract<WantedImage['origin'], { is: 'registry' }>,
) => {
  if (indexDigest === undefined) return undefined;
  const found = await client.manifest({ ...image, digest: indexDigest }).catch(absent);
  const lists = found?.is === 'index' && found.entries.some(({ digest }) => digest === image.digest);
  return lists ? found : undefined;
};
