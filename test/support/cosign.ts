// Signatures of images in the format of cosign's specification, created with node:crypto, and pushed next to the image in a registry.
import { type KeyObject, generateKeyPairSync, sign } from 'node:crypto';
import { type PushTarget, pushBlob, pushManifest, sha256 } from '#test/support/registry/images.ts';

export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export const ecKey = (namedCurve = 'P-256'): KeyPair => generateKeyPairSync('ec', { namedCurve });

export const pemOf = ({ publicKey }: Pick<KeyPair, 'publicKey'>): string =>
  publicKey.export({ type: 'spki', format: 'pem' }) as string;

export const payloadOf = (digest: string, over: object = {}): Buffer =>
  Buffer.from(
    JSON.stringify({
      critical: {
        identity: { 'docker-reference': 'registry.example/disks/fedora' },
        image: { 'docker-manifest-digest': digest },
        type: 'cosign container image signature',
        ...over,
      },
      optional: { creator: 'test', timestamp: 1_700_000_000 },
    }),
  );

const hashOf = ({ asymmetricKeyType }: KeyObject, hash: string | null): string | null =>
  asymmetricKeyType === 'ed25519' ? null : hash;

export const signBytes = ({ privateKey }: KeyPair, bytes: Buffer, hash = 'sha256'): string =>
  sign(hashOf(privateKey, hash), bytes, privateKey).toString('base64');

export interface SimpleSignature {
  readonly payload: Buffer;
  readonly signature: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

const emptyConfig = 'application/vnd.oci.image.config.v1+json';

const artifactOf = async (
  target: PushTarget,
  layers: readonly { readonly bytes: Buffer; readonly mediaType: string; readonly annotations?: object }[],
  over: object = {},
) => {
  const config = Buffer.from('{}');
  const described = [];
  for (const { bytes, mediaType, annotations } of layers)
    described.push({ mediaType, digest: await pushBlob(target, bytes), size: bytes.length, annotations });
  return {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: emptyConfig, digest: await pushBlob(target, config), size: config.length },
    layers: described,
    ...over,
  };
};

/** Under the tag that cosign uses. */
export const pushSignatures = async (
  target: PushTarget,
  digest: string,
  signatures: readonly SimpleSignature[],
): Promise<void> => {
  const layers = signatures.map(({ payload, signature, annotations }) => ({
    bytes: payload,
    mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json',
    annotations: { 'dev.cosignproject.cosign/signature': signature, ...annotations },
  }));
  await pushManifest(target, `${digest.replace(':', '-')}.sig`, await artifactOf(target, layers));
};

export const statementOf = (digest: string, predicateType = 'https://sigstore.dev/cosign/sign/v1'): object => ({
  _type: 'https://in-toto.io/Statement/v1',
  subject: [{ digest: { sha256: digest.slice('sha256:'.length) } }],
  predicateType,
  predicate: {},
});

export const bundleOf = (keys: KeyPair, statement: object, over: object = {}): object => {
  const payload = Buffer.from(JSON.stringify(statement));
  const payloadType = 'application/vnd.in-toto+json';
  const signed = Buffer.concat([
    Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `),
    payload,
  ]);
  return {
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: { publicKey: { hint: '' } },
    dsseEnvelope: { payload: payload.toString('base64'), payloadType, signatures: [{ sig: signBytes(keys, signed) }] },
    ...over,
  };
};

/** An attestation in the form before bundles: the envelope alone. */
export const envelopeOf = (keys: KeyPair, statement: object): object =>
  (bundleOf(keys, statement) as { readonly dsseEnvelope: object }).dsseEnvelope;

/** Under the tag that `cosign attest` uses. */
export const pushAttestations = async (
  target: PushTarget,
  digest: string,
  envelopes: readonly object[],
): Promise<void> => {
  const layers = envelopes.map((envelope) => ({
    bytes: Buffer.from(JSON.stringify(envelope)),
    mediaType: 'application/vnd.dsse.envelope.v1+json',
    annotations: { 'dev.cosignproject.cosign/signature': '' },
  }));
  await pushManifest(target, `${digest.replace(':', '-')}.att`, await artifactOf(target, layers));
};

const bundleType = 'application/vnd.dev.sigstore.bundle.v0.3+json';

/** As artifacts that refer to the image, with the fallback tag for registries without the referrers API. */
export const pushBundles = async (
  target: PushTarget,
  digest: string,
  bundles: readonly object[],
  listedAs: string = bundleType,
): Promise<void> => {
  const manifests = [];
  for (const bundle of bundles) {
    const bytes = Buffer.from(JSON.stringify(bundle));
    const subject = { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest, size: 1 };
    const artifact = await artifactOf(target, [{ bytes, mediaType: bundleType }], {
      artifactType: bundleType,
      subject,
    });
    const { digest: name, size } = await pushManifest(target, sha256(Buffer.from(JSON.stringify(artifact))), artifact);
    manifests.push({ mediaType: artifact.mediaType, digest: name, size, artifactType: listedAs });
  }
  const index = { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests };
  await pushManifest(target, digest.replace(':', '-'), index);
};
