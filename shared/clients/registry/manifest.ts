// Manifests and indexes, of OCI and of Docker: parsed, distinguished, and verified against their digest. Pure.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { RegistryFailure } from '#shared/clients/registry/refusal.ts';
import { parseJson } from '#shared/runtime/json.ts';

export const indexTypes: readonly string[] = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
];
const imageTypes: readonly string[] = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];

/** Every supported media type, for the Accept header. */
export const acceptedTypes = [...indexTypes, ...imageTypes].join(', ');

export const Descriptor = z.looseObject({
  mediaType: z.string(),
  digest: z.string().regex(/^sha(256:[0-9a-f]{64}|512:[0-9a-f]{128})$/),
  size: z.number().int().nonnegative(),
  annotations: z.record(z.string(), z.string()).optional(),
});
export type Descriptor = z.infer<typeof Descriptor>;

/** An empty value counts as missing. */
const Word = z
  .string()
  .optional()
  .catch(undefined)
  .transform((text) => (text === '' ? undefined : text));

const Platform = z
  .looseObject({ os: Word, architecture: Word, variant: Word })
  .optional()
  .catch(undefined)
  .transform((platform) => (platform?.os === undefined && platform?.architecture === undefined ? undefined : platform));

const IndexEntry = Descriptor.extend({ platform: Platform, artifactType: Word });
export type IndexEntry = z.infer<typeof IndexEntry>;

const ImageIndex = z.looseObject({ schemaVersion: z.literal(2), manifests: z.array(z.unknown()) });

/** An invalid entry is skipped: another one may be valid. */
const entriesOf = (manifests: readonly unknown[]): readonly IndexEntry[] =>
  manifests.flatMap((entry) => {
    const parsed = IndexEntry.safeParse(entry);
    return parsed.success ? [parsed.data] : [];
  });

export const ImageManifest = z.looseObject({
  schemaVersion: z.literal(2),
  config: Descriptor,
  layers: z.array(Descriptor),
  annotations: z.record(z.string(), z.string()).optional().catch(undefined),
});
export type ImageManifest = z.infer<typeof ImageManifest>;

/** Entries of an index; none for any other document. */
export const readEntries = (document: unknown): readonly IndexEntry[] => {
  const index = ImageIndex.safeParse(document);
  return index.success ? entriesOf(index.data.manifests) : [];
};

/** A manifest as received, with verified digest. */
export type Manifest =
  | {
      readonly is: 'index';
      readonly digest: string;
      readonly bytes: Uint8Array;
      readonly entries: readonly IndexEntry[];
    }
  | { readonly is: 'image'; readonly digest: string; readonly bytes: Uint8Array; readonly image: ImageManifest };

export const digestOf = (bytes: Uint8Array, algorithm: 'sha256' | 'sha512' = 'sha256'): string =>
  `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;

export const algorithmOf = (digest: string): 'sha256' | 'sha512' =>
  digest.startsWith('sha512:') ? 'sha512' : 'sha256';

/** Throws RegistryFailure if the bytes do not have the digest `expected`, or are not a manifest. `where`: the image, for messages. */
export const readManifest = (bytes: Uint8Array, expected: string | undefined, where: string): Manifest => {
  const digest = digestOf(bytes, expected === undefined ? 'sha256' : algorithmOf(expected));
  if (expected !== undefined && digest !== expected) {
    throw new RegistryFailure('DigestMismatch', `the manifest of ${where} has digest ${digest}, not ${expected}`);
  }
  const document = parseDocument(bytes, where);
  const index = ImageIndex.safeParse(document);
  if (index.success) return { is: 'index', digest, bytes, entries: entriesOf(index.data.manifests) };
  const image = ImageManifest.safeParse(document);
  if (image.success) return { is: 'image', digest, bytes, image: image.data };
  throw new RegistryFailure('InvalidImage', `${where} is neither an image nor an index of images (schema version 2)`);
};

const parseDocument = (bytes: Uint8Array, where: string): unknown => {
  const value = parseJson(Buffer.from(bytes).toString('utf8'));
  if (value === undefined) throw new RegistryFailure('InvalidImage', `the manifest of ${where} is not JSON`);
  return value;
};

// Selects an image of an index.

/** Build tools store provenance and SBOMs beside the images, under an unknown platform. */
const isAttestation = ({ annotations, platform }: IndexEntry): boolean =>
  annotations?.['vnd.docker.reference.type'] !== undefined ||
  platform?.os === 'unknown' ||
  platform?.architecture === 'unknown';

const nameOf = ({ platform }: IndexEntry): string => {
  if (platform === undefined) return 'any';
  const { os = 'any', architecture = 'any', variant } = platform;
  return variant === undefined ? `${os}/${architecture}` : `${os}/${architecture}/${variant}`;
};

/** The plain architecture comes before its variants, and newer variants before older ones. */
const byVariant = (a: IndexEntry, b: IndexEntry): number => {
  const [left, right] = [a.platform?.variant, b.platform?.variant];
  if (left === undefined || right === undefined) return left === right ? 0 : left === undefined ? -1 : 1;
  return right.localeCompare(left, 'en', { numeric: true });
};

/** The platform of the entry, if set, does not contradict `wanted`. */
const mayBe = (entry: IndexEntry | undefined, wanted: string): boolean => {
  const { os = 'linux', architecture = wanted } = entry?.platform ?? {};
  return os === 'linux' && architecture === wanted;
};

/**
 * The image for an architecture (`amd64`, `arm64`, …). If an index has one image without a platform, it is selected. Throws RegistryFailure
 * with the available platforms.
 */
export const selectPlatform = (entries: readonly IndexEntry[], architecture: string, where: string): IndexEntry => {
  const images = entries.filter((entry) => !isAttestation(entry));
  const fitting = images
    .filter(({ platform }) => platform?.architecture === architecture && platform.os === 'linux')
    .sort(byVariant);
  const [only, ...others] = images;
  const isOpen = others.length === 0 && mayBe(only, architecture);
  const chosen = fitting[0] ?? (isOpen ? only : undefined);
  if (chosen !== undefined) return chosen;
  const known = images.length === 0 ? 'nothing' : [...new Set(images.map(nameOf))].join(', ');
  throw new RegistryFailure('PlatformAbsent', `${where} has no image for linux/${architecture}; it has ${known}`);
};
