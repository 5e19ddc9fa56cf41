// Reads what lies beside an image in its registry: signatures by tag, and artifacts that refer to it. Decides nothing.
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import type { Descriptor } from '#shared/clients/registry/manifest.ts';
import type { Reference } from '#shared/clients/registry/reference.ts';
import { RegistryFailure, readBody } from '#shared/clients/registry/refusal.ts';
import { lookup } from '#shared/runtime/lookup.ts';

/** One signature as it was found: of strangers, and not yet looked at. */
export interface Evidence {
  readonly form: 'simple' | 'bundle' | 'envelope';
  /** Of the bytes, as the manifest names them. */
  readonly digest: string;
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

/** Of one attestation: bills of materials are long. */
const mostAttestedBytes = 4 * 1024 * 1024;
const mostAttestations = 16;

const forms = {
  'application/vnd.dev.cosign.simplesigning.v1+json': 'simple',
  'application/vnd.dsse.envelope.v1+json': 'envelope',
} as const;
const formOf = (type: string): Evidence['form'] | undefined =>
  type.startsWith('application/vnd.dev.sigstore.bundle') ? 'bundle' : lookup(forms, type);

/** What is looked for: the forms it has, the tag that cosign gives it, artifacts that hold it, and how much of it is read. */
interface Kind {
  readonly what: string;
  readonly tag: string;
  readonly forms: readonly Evidence['form'][];
  readonly artifact: string;
  readonly most: number;
  readonly mostBytes: number;
}

const signatures: Kind = {
  what: 'signature',
  tag: 'sig',
  forms: ['simple', 'bundle'],
  artifact: 'application/vnd.dev.cosign.artifact.sig.v1+json',
  most: mostSignatures,
  mostBytes,
};
const attestations: Kind = {
  what: 'attestation',
  tag: 'att',
  forms: ['envelope', 'bundle'],
  artifact: 'application/vnd.dev.cosign.artifact.att.v1+json',
  most: mostAttestations,
  mostBytes: mostAttestedBytes,
};

/** Says nothing of an artifact: cosign writes it into the list of a registry that keeps none itself. */
const untyped = 'application/vnd.oci.empty.v1+json';

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

const layersOf = async (
  registry: Registry,
  { forms: wanted }: Kind,
  image: Reference,
  where: string,
): Promise<readonly Found[]> => {
  const manifest = await registry.manifest(image).catch(absent);
  if (manifest?.is !== 'image') return [];
  return manifest.image.layers
    .filter(({ mediaType }) => wanted.some((form) => form === formOf(mediaType)))
    .map((layer) => ({ image, where, layer }));
};

/** `undefined` where it is not there, or too large. */
const contentOf = async (
  registry: Registry,
  { what, mostBytes: most }: Kind,
  { image, layer }: Found,
): Promise<Buffer | undefined> => {
  if (layer.size > most) return undefined;
  const response = await registry.blob(image, layer.digest, 0).catch(absent);
  if (response === undefined) return undefined;
  return readBody(response, `${what} ${layer.digest}`, most).catch(absent);
};

const find = async (registry: Registry, kind: Kind, image: Reference, digest: string): Promise<FoundEvidence> => {
  const { host, repository } = image;
  const tag = `${digest.replace(':', '-')}.${kind.tag}`;
  const tagged = await layersOf(registry, kind, { host, repository, tag }, `tag ${tag}`);
  const found = [...tagged];
  const referrers = await registry.referrers({ host, repository, digest });
  const isKind = (type: string): boolean =>
    type === untyped || type === kind.artifact || kind.forms.some((form) => form !== 'simple' && form === formOf(type));
  const holding = referrers.filter(({ artifactType, mediaType }) => isKind(artifactType ?? mediaType));
  for (const { digest: referrer } of holding.slice(0, mostSignatures)) {
    found.push(...(await layersOf(registry, kind, { host, repository, digest: referrer }, `referrer ${referrer}`)));
  }
  const evidence: Evidence[] = [];
  let isCut = found.length > kind.most || holding.length > mostSignatures;
  for (const one of found.slice(0, kind.most)) {
    const { digest: name, mediaType, annotations = {} } = one.layer;
    const bytes = await contentOf(registry, kind, one);
    if (bytes === undefined) isCut ||= one.layer.size > kind.mostBytes;
    else evidence.push({ form: formOf(mediaType) ?? 'simple', digest: name, where: one.where, bytes, annotations });
  }
  return { evidence, isCut };
};

/** Throws RegistryFailure and HttpFailure where it cannot be known what is there. */
export const findEvidence = (registry: Registry, image: Reference, digest: string): Promise<FoundEvidence> =>
  find(registry, signatures, image, digest);

/** Provenance and bills of materials beside the image. Throws as `findEvidence` does. */
export const findAttestations = (registry: Registry, image: Reference, digest: string): Promise<FoundEvidence> =>
  find(registry, attestations, image, digest);
