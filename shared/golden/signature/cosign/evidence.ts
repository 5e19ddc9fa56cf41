// Reads what lies beside an image in its registry: signatures by tag, and artifacts that refer to it. Decides nothing.
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import type { Descriptor } from '#shared/clients/registry/manifest.ts';
import type { Reference } from '#shared/clients/registry/reference.ts';
import { RegistryFailure, readBody } from '#shared/clients/registry/refusal.ts';

/** One signature as it was found: of strangers, and not yet looked at. */
export interface Evidence {
  readonly form: 'simple' | 'bundle';
  /** Where it lies, for messages. */
  readonly where: string;
  /** What is signed, or the bundle with it. */
  readonly bytes: Buffer;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface FoundEvidence {
  readonly evidence: readonly Evidence[];
  /** More were there than are looked at. */
  readonly isCut: boolean;
}

const mostSignatures = 32;
/** Of one signature with all that belongs to it. */
const mostBytes = 1024 * 1024;

const simpleType = 'application/vnd.dev.cosign.simplesigning.v1+json';
const isBundle = (type: string): boolean => type.startsWith('application/vnd.dev.sigstore.bundle');
const isSignature = (type: string): boolean =>
  isBundle(type) || type === 'application/vnd.dev.cosign.artifact.sig.v1+json';

interface Found {
  readonly image: Reference;
  readonly where: string;
  readonly layer: Descriptor;
}

type Registry = Pick<RegistryClient, 'manifest' | 'referrers' | 'blob'>;

const absent = (error: unknown): undefined => {
  if (error instanceof RegistryFailure && (error.code === 'ImageNotFound' || error.code === 'InvalidImage'))
    return undefined;
  throw error;
};

const layersOf = async (registry: Registry, image: Reference, where: string): Promise<readonly Found[]> => {
  const manifest = await registry.manifest(image).catch(absent);
  if (manifest?.is !== 'image') return [];
  return manifest.image.layers
    .filter(({ mediaType }) => mediaType === simpleType || isBundle(mediaType))
    .map((layer) => ({ image, where, layer }));
};

/** `undefined` where it is not there, or too large to be a signature. */
const contentOf = async (registry: Registry, { image, layer }: Found): Promise<Buffer | undefined> => {
  if (layer.size > mostBytes) return undefined;
  const response = await registry.blob(image, layer.digest, 0).catch(absent);
  if (response === undefined) return undefined;
  return readBody(response, `signature ${layer.digest}`, mostBytes).catch(absent);
};

/** Throws RegistryFailure and HttpFailure where it cannot be known what is there. */
export const findEvidence = async (registry: Registry, image: Reference, digest: string): Promise<FoundEvidence> => {
  const { host, repository } = image;
  const tag = `${digest.replace(':', '-')}.sig`;
  const tagged = await layersOf(registry, { host, repository, tag }, `tag ${tag}`);
  const found = [...tagged];
  const referrers = await registry.referrers({ host, repository, digest });
  const signing = referrers.filter(({ artifactType, mediaType }) => isSignature(artifactType ?? mediaType));
  for (const { digest: referrer } of signing.slice(0, mostSignatures)) {
    // oxlint-disable-next-line no-await-in-loop
    found.push(...(await layersOf(registry, { host, repository, digest: referrer }, `referrer ${referrer}`)));
  }
  const evidence: Evidence[] = [];
  for (const one of found.slice(0, mostSignatures)) {
    // oxlint-disable-next-line no-await-in-loop
    const bytes = await contentOf(registry, one);
    const form = isBundle(one.layer.mediaType) ? 'bundle' : 'simple';
    if (bytes !== undefined) evidence.push({ form, where: one.where, bytes, annotations: one.layer.annotations ?? {} });
  }
  return { evidence, isCut: found.length > mostSignatures || signing.length > mostSignatures };
};
