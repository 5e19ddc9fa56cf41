// Metadata of one image in a backup target: our own document, and the one of Harvester. It contains no times, so that the same image gives the
// same text. Pure.
import { createHash } from 'node:crypto';
import { parse, stringify } from 'yaml';
import { z } from 'zod';

const text = z.string();
const texts = z.record(text, text);

/** Location of the data. */
export const BackupData = z.discriminatedUnion('kept', [
  /** A table of chunks and its chunks, below the prefix of the target. */
  z.object({ kept: z.literal('chunks'), disk: text.regex(/^[0-9a-f]{64}$/) }),
  /** By the storage itself, which restores it from this URL. */
  z.object({ kept: z.literal('by-storage'), url: text.min(1), checksum: text.optional() }),
]);
export type BackupData = z.infer<typeof BackupData>;

export const ImageMetadata = z.object({
  version: z.literal(1),
  image: z.object({
    apiVersion: text,
    kind: text,
    namespace: text.min(1),
    name: text.min(1),
    uid: text.min(1),
    /** UID of the cluster's kube-system namespace. */
    cluster: text,
  }),
  backend: text,
  displayName: text,
  labels: texts.optional(),
  annotations: texts.optional(),
  /** As written by its user, without secrets in URLs. */
  spec: z.record(text, z.unknown()),
  storageClass: z.object({ name: text, parameters: texts.optional() }).optional(),
  /** Names that other objects refer to. */
  children: z
    .object({
      volume: text.optional(),
      snapshot: text.optional(),
      backingImage: text.optional(),
      storageClass: text.optional(),
    })
    .optional(),
  size: z.int().nonnegative().optional(),
  virtualSize: z.int().nonnegative().optional(),
  format: text.optional(),
  compression: text.optional(),
  digests: texts.optional(),
  data: BackupData,
});
export type ImageMetadata = z.infer<typeof ImageMetadata>;

/** The format of Harvester since release 1.2. */
const Released = z.object({
  name: text.min(1),
  namespace: text.default('default'),
  url: text.min(1),
  displayName: text.min(1),
  description: text.optional(),
  checksum: text.optional(),
  storageClassParameters: texts.nullish(),
});

/** Records that an image was deleted, so that it is not restored again. One per cluster that deleted it. */
export const Tombstone = z.object({
  version: z.literal(1),
  deleted: z.object({
    cluster: text,
    namespace: text,
    name: text,
    /** UIDs of the image of the metadata. */
    uids: z.array(text),
  }),
});
export type Tombstone = z.infer<typeof Tombstone>;

export type ParsedMetadata<T> =
  | { readonly value: T }
  | {
      readonly problem: string;
      /** Written by a later release: it is valid, and must not be replaced. */
      readonly isLater?: true;
    };

export const shortHashOf = (of: string): string => createHash('sha256').update(of).digest('hex').slice(0, 8);

const load = (bytes: Buffer): ParsedMetadata<unknown> => {
  if (bytes.length === 0) return { problem: 'the object is empty' };
  try {
    return { value: parse(bytes.toString('utf8'), { maxAliasCount: 0, logLevel: 'error' }) };
  } catch {
    return { problem: 'the object is not valid YAML: it may be cut off, or was never metadata' };
  }
};

const faultsOf = (error: z.ZodError): string =>
  error.issues.map(({ path, message }) => `${path.join('.') || 'document'}: ${message}`).join('; ');

/** A document of a later version is rejected as a whole. */
const versionProblem = (value: unknown): string | undefined => {
  const version = typeof value === 'object' && value !== null && 'version' in value ? value.version : undefined;
  return typeof version === 'number' && version > 1
    ? `the metadata has version ${version}, and this release reads version 1: update Bullion`
    : undefined;
};

const parseAs = <T>(bytes: Buffer, schema: z.ZodType<T>): ParsedMetadata<T> => {
  const loaded = load(bytes);
  if ('problem' in loaded) return loaded;
  const later = versionProblem(loaded.value);
  if (later !== undefined) return { problem: later, isLater: true };
  const parsed = schema.safeParse(loaded.value);
  return parsed.success ? { value: parsed.data } : { problem: `the metadata is incomplete: ${faultsOf(parsed.error)}` };
};

export const parseMetadata = (bytes: Buffer): ParsedMetadata<ImageMetadata> => parseAs(bytes, ImageMetadata);
export const parseTombstone = (bytes: Buffer): ParsedMetadata<Tombstone> => parseAs(bytes, Tombstone);

/** Converts Harvester's format to our own, with the only backend it supports. Its image has no UID, so a digest of its content is used. */
export const parseReleased = (bytes: Buffer): ParsedMetadata<ImageMetadata> => {
  const parsed = parseAs(bytes, Released);
  if ('problem' in parsed) return parsed;
  const { name, namespace, url, displayName, description, checksum, storageClassParameters } = parsed.value;
  const backingImage = URL.canParse(url) ? new URL(url).searchParams.get('backingImage') : null;
  if (backingImage === null) return { problem: 'its url does not name a backing image (?backingImage=)' };
  const own = namespace === '' ? 'default' : namespace;
  return {
    value: {
      version: 1,
      image: {
        apiVersion: 'harvesterhci.io/v1beta1',
        kind: 'VirtualMachineImage',
        namespace: own,
        name,
        uid: `released-${createHash('sha256').update(bytes).digest('hex').slice(0, 32)}`,
        cluster: 'harvester',
      },
      backend: 'backingimage',
      displayName,
      spec: {
        backend: 'backingimage',
        displayName,
        sourceType: 'restore',
        url,
        ...(description ? { description } : {}),
        ...(checksum ? { checksum } : {}),
        ...(storageClassParameters ? { storageClassParameters } : {}),
      },
      children: { backingImage },
      data: { kept: 'by-storage', url, ...(checksum ? { checksum } : {}) },
    },
  };
};

export const serializeMetadata = (metadata: ImageMetadata): Buffer =>
  Buffer.from(stringify(sorted(metadata), { lineWidth: 0, aliasDuplicateObjects: false }));

export const serializeTombstone = (tombstone: Tombstone): Buffer => Buffer.from(stringify(tombstone));

/** Sorts keys and drops undefined values, so that equal content gives equal text. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, sorted(item)]));
};

/** A restored image has a disk as source, and lacks the fields of the published file. */
const withoutOrigin = ({ image, spec, ...known }: ImageMetadata): unknown => {
  const { apiVersion, kind, namespace, name } = image;
  const { size: _size, format: _format, compression: _compression, digests: _digests, ...rest } = known;
  // The spec of a restored image differs in its source.
  const { sourceType: _type, url: _url, checksum: _checksum, ...lasting } = spec;
  return sorted({ ...rest, image: { apiVersion, kind, namespace, name }, spec: lasting });
};

/** Whether two documents describe the same image, whichever cluster wrote them, and whether it was restored or not. */
export const isSameMetadata = (a: ImageMetadata, b: ImageMetadata): boolean =>
  JSON.stringify(withoutOrigin(a)) === JSON.stringify(withoutOrigin(b));

/** Whether the disks are the same, as far as both documents describe them. */
export const haveSameBytes = (a: ImageMetadata['data'], b: ImageMetadata['data']): boolean =>
  a.kept === 'chunks' ? b.kept === 'chunks' && a.disk === b.disk : b.kept === 'by-storage' && a.url === b.url;
