// What a bundle holds: an OCI image layout, whose index names images of disks, what signs them, and a document that says how they belong together. Pure.
import { z } from 'zod';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { Descriptor, digestOf } from '#shared/clients/registry/manifest.ts';
import { parseJson } from '#shared/runtime/json.ts';
import { configType, manifestOf, manifestType } from '#shared/transfer/export/image-documents.ts';
import { AppError, InvalidInput, messageOf } from '#shared/runtime/errors.ts';

export const layoutFile = 'oci-layout';
export const indexFile = 'index.json';
const blobFolder = 'blobs/sha256/';

/** Manifests and documents are read into memory; registries take no larger manifest either. */
export const mostDocumentBytes = 4 * 1024 * 1024;

export const layoutBytes = Buffer.from('{"imageLayoutVersion":"1.0.0"}');
export const indexType = 'application/vnd.oci.image.index.v1+json';
export const refName = 'org.opencontainers.image.ref.name';
/** Of the artifact with the document. */
export const bundleType = 'application/vnd.bullion.bundle.v1+json';

const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const Tag = z.string().regex(/^\w[\w.-]{0,127}$/);
/** Of an object: a DNS subdomain. Also a repository of a registry. */
const Name = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*$/);

/** Shown on terminals. */
const Text = z
  .string()
  .max(1000)
  .regex(/^\P{C}*$/u);

const Disk = z.strictObject({
  layer: Digest,
  /** Of the file in the layer. */
  file: Text.min(1),
  size: z.number().int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type Disk = z.infer<typeof Disk>;

const BundledImage = z.strictObject({
  name: Name,
  digest: Digest,
  tags: z.array(Tag).min(1).max(16),
  /** Of the index that lists it: signatures may be of that. */
  indexDigest: Digest.optional(),
  /** Where it was taken from, for people. */
  from: Text,
  /** The DataVolume of a version of a golden image; default: an image of the name. */
  version: Name.optional(),
  /** Names that point to the version. */
  dataSources: z.array(Name).max(32).default([]),
  /** The policy whose rules about signatures apply. */
  policy: Name.optional(),
  /** Layers that the other side has: they are not in the bundle. */
  leftOut: z.array(Digest).max(64).default([]),
  /** Default: not known, since its layer was left out unread. */
  disk: Disk.optional(),
});
export type BundledImage = z.infer<typeof BundledImage>;

const kinds = {
  DataSource: apiVersionOf(dataSourceKind.type),
  DataImportCron: apiVersionOf(dataImportCronKind.type),
  GoldenImagePolicy: apiVersionOf(goldenImagePolicyKind.type),
} as const;

/** Names, labels and what somebody asked for: no owners, finalizers or marks of another cluster. */
const BundledObject = z
  .strictObject({
    apiVersion: z.string(),
    kind: z.enum(Object.keys(kinds) as (keyof typeof kinds)[]),
    metadata: z.strictObject({ name: Name, labels: z.record(z.string(), z.string()).optional() }),
    spec: z.looseObject({}),
  })
  .refine(({ apiVersion, kind }) => apiVersion === kinds[kind], { message: 'has another apiVersion than its kind' });
export type BundledObject = z.infer<typeof BundledObject>;

const BundleDocument = z.strictObject({
  version: z.literal(1),
  images: z.array(BundledImage).min(1).max(1000),
  objects: z.array(BundledObject).max(1000),
});
export type BundleDocument = z.infer<typeof BundleDocument>;

/** What the index lists. */
export interface Listed extends Descriptor {
  readonly artifactType?: string | undefined;
}

/** Name of a blob in the archive. */
export const blobName = (digest: string): string => `${blobFolder}${digest.slice('sha256:'.length)}`;

/** `undefined` for a name that no blob has. */
export const digestFromName = (name: string): string | undefined => {
  const hex = name.startsWith(blobFolder) ? name.slice(blobFolder.length) : '';
  return /^[0-9a-f]{64}$/.test(hex) ? `sha256:${hex}` : undefined;
};

export const isFolder = (name: string): boolean => name === 'blobs' || `${name}/` === blobFolder;

/** The command was right, and what it asks for is not done. */
export const refusal = (message: string, field = 'bundle'): InvalidInput =>
  new InvalidInput(message, [{ field, message }]);

class DamagedBundle extends InvalidInput {}

/** `what`, where `path` is the bundle: its verb and the rest. */
export const damaged = (path: string, what: string): InvalidInput => {
  const message = `${path} ${what}: nothing was taken from it; save it, or copy it, again`;
  return new DamagedBundle(message, [{ field: path, message }]);
};

/** What is wrong with a part of a bundle is wrong with the bundle. */
export const reading = async <T>(path: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DamagedBundle || !(error instanceof AppError)) throw error;
    throw damaged(path, `is damaged, or is no bundle: ${messageOf(error)}`);
  }
};

const readJson = (bytes: Uint8Array, where: string): unknown => {
  const value = parseJson(Buffer.from(bytes).toString('utf8'));
  if (value === undefined) throw refusal(`${where} is not JSON`);
  return value;
};

const Index = z.looseObject({
  schemaVersion: z.literal(2),
  manifests: z.array(Descriptor.extend({ digest: Digest, artifactType: z.string().optional() })).max(100_000),
});

export const readIndex = (bytes: Uint8Array): readonly Listed[] => {
  const parsed = Index.safeParse(readJson(bytes, indexFile));
  if (!parsed.success) throw refusal(`${indexFile} is not an index of images`);
  return parsed.data.manifests;
};

/** Throws InvalidInput, which names the first field that is wrong. */
export const readDocument = (bytes: Uint8Array, where: string): BundleDocument => {
  const parsed = BundleDocument.safeParse(readJson(bytes, where));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw refusal(`${where} is not the document of a bundle (${issue?.path.join('.')}: ${issue?.message})`);
};

export const indexBytes = (manifests: readonly Listed[]): Buffer =>
  Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests }));

const emptyConfig = Buffer.from('{}');
const emptyType = 'application/vnd.oci.empty.v1+json';

/** The document as an artifact: its blobs, of which the manifest is last, and its line of the index. */
export const documentArtifact = (document: BundleDocument) => {
  const body = Buffer.from(JSON.stringify(document));
  const manifest = manifestOf({
    artifactType: bundleType,
    config: { mediaType: emptyType, digest: digestOf(emptyConfig), size: emptyConfig.length },
    layers: [{ mediaType: bundleType, digest: digestOf(body), size: body.length }],
  });
  const listed: Listed = {
    mediaType: manifestType,
    artifactType: bundleType,
    digest: digestOf(manifest),
    size: manifest.length,
  };
  return { body, blobs: [body, emptyConfig, manifest], listed };
};

export { configType, manifestType };
