// Writes a bundle: images as they lie in registries, disks of the cluster as images, and the document that says how they belong together.
import { type KeyObject, createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, rm, stat } from 'node:fs/promises';
import { z } from 'zod';
import { type Collected, type Collecting, collectImage } from '#cli/bundle/collect.ts';
import {
  type BundledImage,
  type BundledObject,
  type Disk,
  type Listed,
  configType,
  documentArtifact,
  indexBytes,
  manifestType,
  readDocument,
  refName,
} from '#cli/bundle/layout.ts';
import { replaceFile } from '#cli/bundle/state.ts';
import type { ImageOrigin, WantedImage } from '#cli/bundle/wanted.ts';
import { type BundleWriter, createBundleWriter, partialOf, toWriteRefusal } from '#cli/bundle/writer.ts';
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { digestOf } from '#shared/clients/registry/manifest.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';
import type { TargetName } from '#shared/exchange/target-name.ts';
import { layerAround } from '#shared/transfer/export/disk-layer.ts';
import { configOf, describe, layerType, manifestOf } from '#shared/transfer/export/image-documents.ts';
import { payloadOf, signatureTag, signedLayer } from '#shared/transfer/export/sign-image.ts';

export interface Saving extends Omit<Collecting, 'writer'> {
  readonly path: string;
  readonly wanted: readonly WantedImage[];
  readonly architecture: string;
  /** Runs with a client of the repository that an image lies in. */
  readonly withRegistry: <T>(
    origin: Extract<ImageOrigin, { is: 'registry' }>,
    work: (client: RegistryClient) => Promise<T>,
  ) => Promise<T>;
  /** A disk of the cluster as a qcow2 file; `name`: of the image, for people. */
  readonly download: (disk: { readonly name: string; readonly target: TargetName }, file: string) => Promise<void>;
  readonly signer?: KeyObject | undefined;
}

const fileName = 'disk.qcow2';

/** Stands for an image where the document is signed. */
const bundleName = 'bundle';

async function* layerOf(file: string, size: number): AsyncGenerator<Uint8Array, Disk, undefined> {
  const { head, tail } = layerAround(fileName, size);
  const hash = createHash('sha256');
  yield head;
  for await (const part of createReadStream(file, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
    hash.update(part);
    yield part;
  }
  yield tail;
  return { layer: '', file: `disk/${fileName}`, size, sha256: hash.digest('hex') };
}

/** Disks of the cluster that an interrupted save had written: it would be long to fetch them again. */
const Notes = z.record(
  z.string(),
  z.object({ layer: z.string(), file: z.string(), size: z.number(), sha256: z.string() }),
);
type Notes = z.infer<typeof Notes>;

const notesOf = (path: string): string => `${partialOf(path)}.json`;
const diskFileOf = (path: string): string => `${partialOf(path)}.qcow2`;

const readNotes = async (path: string): Promise<Notes> =>
  parseJsonAs(Notes, await readFile(notesOf(path), 'utf8').catch(() => undefined)) ?? {};

class NotThere extends Error {}

/** Whether the disk is in the archive already. */
const isStill = async (writer: BundleWriter, disk: Disk): Promise<boolean> => {
  const { head, tail } = layerAround(fileName, disk.size);
  const absent = (): never => {
    throw new NotThere();
  };
  try {
    await writer.add({ digest: disk.layer, size: head.length + disk.size + tail.length, read: absent });
    return true;
  } catch (error) {
    if (error instanceof NotThere) return false;
    throw error;
  }
};

const writeDisk = async (
  saving: Saving,
  writer: BundleWriter,
  origin: Parameters<Saving['download']>[0],
): Promise<Disk> => {
  const file = diskFileOf(saving.path);
  await saving.download(origin, file);
  const { size } = await stat(file);
  const { head, tail } = layerAround(fileName, size);
  const made: { disk?: Disk } = {};
  const layer = await writer.add({
    size: head.length + size + tail.length,
    read: async function* read() {
      made.disk = yield* layerOf(file, size);
    },
  });
  await rm(file, { force: true });
  return { layer, file: `disk/${fileName}`, size, sha256: made.disk?.sha256 ?? '' };
};

const fetchDisk = async (
  saving: Saving,
  writer: BundleWriter,
  name: string,
  { target, uid }: Extract<ImageOrigin, { is: 'cluster' }>,
) => {
  const notes = await readNotes(saving.path);
  const key = `${target.plural}/${target.namespace}/${target.name}/${uid}`;
  const before = notes[key];
  if (before !== undefined && (await isStill(writer, before))) return before;
  const disk = await writeDisk(saving, writer, { name, target });
  await replaceFile(notesOf(saving.path), JSON.stringify({ ...notes, [key]: disk }));
  return disk;
};

const lineOf = (manifest: Uint8Array, name: string): Listed => ({
  mediaType: manifestType,
  digest: digestOf(manifest),
  size: manifest.length,
  annotations: { [refName]: name },
});

const addSignature = async (writer: BundleWriter, key: KeyObject, name: string, digest: string): Promise<Listed> => {
  const payload = payloadOf(name, digest);
  const layers = [signedLayer(key, payload)];
  const config = Buffer.from(
    JSON.stringify({ architecture: '', os: '', config: {}, rootfs: { type: 'layers', diff_ids: [layers[0]?.digest] } }),
  );
  const manifest = manifestOf({
    config: { mediaType: configType, digest: digestOf(config), size: config.length },
    layers,
  });
  for (const bytes of [payload, config, manifest]) await writer.addBytes(bytes);
  return lineOf(manifest, `${name}:${signatureTag(digest)}`);
};

/** The same image that a push of the disk makes, without what tells one push from another. */
const packDisk = async (
  saving: Saving,
  writer: BundleWriter,
  { name, origin, tags }: WantedImage,
): Promise<Collected> => {
  if (origin.is !== 'cluster') throw new TypeError('the disk of a cluster is expected');
  const disk = await fetchDisk(saving, writer, name, origin);
  const { head, tail } = layerAround(fileName, disk.size);
  const isThere = saving.have.has(disk.layer) || saving.have.has(`sha256:${disk.sha256}`);
  if (isThere) await writer.dropLast(disk.layer);
  const about = { annotations: { 'org.opencontainers.image.title': name }, environment: [] };
  const labels = describe(about, disk.sha256);
  const config = configOf({ about, architecture: saving.architecture, labels, layerDigest: disk.layer });
  const manifest = manifestOf({
    config: { mediaType: configType, digest: digestOf(config), size: config.length },
    layers: [{ mediaType: layerType, digest: disk.layer, size: head.length + disk.size + tail.length }],
    annotations: labels,
  });
  for (const bytes of [config, manifest]) await writer.addBytes(bytes);
  const listed = tags.map((tag) => lineOf(manifest, `${name}:${tag}`));
  return { digest: digestOf(manifest), leftOut: isThere ? [disk.layer] : [], disk, listed };
};

const collect = async (saving: Saving, writer: BundleWriter, wanted: WantedImage): Promise<Collected> => {
  const { origin } = wanted;
  const collected =
    origin.is === 'cluster'
      ? await packDisk(saving, writer, wanted)
      : await saving.withRegistry(origin, (client) => collectImage(client, wanted, { ...saving, writer }));
  const { signer } = saving;
  if (signer === undefined) return collected;
  // Signatures of others under the same tag come with the image: one tag has one manifest.
  const tag = `${wanted.name}:${signatureTag(collected.digest)}`;
  if (collected.listed.some(({ annotations }) => annotations?.[refName] === tag)) return collected;
  const line = await addSignature(writer, signer, wanted.name, collected.digest);
  return { ...collected, listed: [...collected.listed, line] };
};

const imageOf = (wanted: WantedImage, { digest, indexDigest, leftOut, disk }: Collected): BundledImage => ({
  name: wanted.name,
  digest,
  tags: [...wanted.tags],
  ...(indexDigest === undefined ? {} : { indexDigest }),
  from: wanted.from,
  ...(wanted.version === undefined ? {} : { version: wanted.version }),
  dataSources: [...wanted.dataSources],
  ...(wanted.policy === undefined ? {} : { policy: wanted.policy }),
  leftOut: [...leftOut],
  ...(disk === undefined ? {} : { disk }),
});

/** Each once: several images may share a cron or a policy. */
const unique = (objects: readonly BundledObject[]): readonly BundledObject[] => {
  const keyOf = ({ kind, metadata }: BundledObject): string => `${kind}/${metadata.name}`;
  const found = new Map(objects.map((object) => [keyOf(object), object]));
  return [...found.values()].toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
};

/** Of several images under one tag, the first has it. */
const withoutRepeats = (listed: readonly Listed[]): readonly Listed[] => {
  const seen = new Set<string>();
  return listed.filter(({ digest, annotations }) => {
    const name = annotations?.[refName];
    const key = name ?? digest;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
};

/** Throws an AppError; what was written then stays, and the next save continues with it. */
export const saveBundle = async (saving: Saving): Promise<readonly BundledImage[]> => {
  const { path, wanted } = saving;
  const writer = await createBundleWriter(path);
  try {
    const images: BundledImage[] = [];
    const listed: Listed[] = [];
    for (const one of wanted) {
      saving.signal.throwIfAborted();
      const collected = await collect(saving, writer, one);
      images.push(imageOf(one, collected));
      listed.push(...collected.listed);
    }
    const objects = unique(wanted.flatMap((one) => one.objects));
    const artifact = documentArtifact({ version: 1, images, objects: [...objects] });
    // A bundle that could not be read is noticed here, and not on the other side.
    readDocument(artifact.body, 'what was asked for');
    for (const bytes of artifact.blobs) await writer.addBytes(bytes);
    // It names each image by its digest: who trusts this signature trusts all of the bundle.
    if (saving.signer !== undefined)
      listed.push(await addSignature(writer, saving.signer, bundleName, artifact.listed.digest));
    await writer.finish(indexBytes([artifact.listed, ...withoutRepeats(listed)]));
    await rm(notesOf(path), { force: true });
    return images;
  } catch (error) {
    throw toWriteRefusal(path, error);
  } finally {
    await writer.close();
  }
};
