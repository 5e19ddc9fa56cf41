// Signs an image in a registry as `cosign sign --key` does, without a transparency log: the payload lies beside the image, under a tag that is made of
// its digest. `cosign verify --insecure-ignore-tlog --key` and golden image policies accept it.
import { type KeyObject, createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { digestOf } from '#shared/clients/registry/manifest.ts';
import { TransferError } from '#shared/transfer/fault.ts';

type Data = Readonly<Record<string, string>>;

const invalid = (name: string, problem: string): TransferError =>
  new TransferError('InvalidSpec', `${name} ${problem}`);

const privatePem = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{1,20000}?-----END [A-Z ]*PRIVATE KEY-----/;

const readPem = (pem: string, passphrase: string | undefined): KeyObject | undefined => {
  try {
    return createPrivateKey({ key: pem, format: 'pem', ...(passphrase === undefined ? {} : { passphrase }) });
  } catch {
    // The message of the library is about its own terms.
    return undefined;
  }
};

/** Keys that cosign verifies with sha256, its default; Ed25519 needs no digest. */
const isAccepted = ({ asymmetricKeyType, asymmetricKeyDetails: { modulusLength = 0 } = {} }: KeyObject): boolean =>
  asymmetricKeyType === 'ec' ||
  asymmetricKeyType === 'ed25519' ||
  (asymmetricKeyType === 'rsa' && modulusLength >= 2048);

/**
 * The private key in any key of a Secret, and its passphrase in `password`. `what`: where they are, for messages. Throws TransferError, without any
 * content of the Secret.
 */
export const readSigningKey = (data: Data, what: string): KeyObject => {
  const [pem] = Object.values(data).flatMap((text) => privatePem.exec(text)?.[0] ?? []);
  if (pem === undefined)
    throw invalid(what, 'has no private key: it needs one in PEM form, such as "openssl genpkey" writes');
  if (/BEGIN ENCRYPTED (SIGSTORE|COSIGN) PRIVATE KEY/.test(pem))
    throw invalid(
      what,
      'has a key in the own format of cosign: create one with openssl, and import it with "cosign import-key-pair" where you use cosign',
    );
  const key = readPem(pem, data['password']?.trim());
  if (key === undefined) throw invalid(what, 'has a private key that cannot be read, or needs another "password"');
  if (!isAccepted(key))
    throw invalid(what, `has a key of type ${key.asymmetricKeyType}: use ECDSA, Ed25519, or RSA from 2048 bits on`);
  return key;
};

const signatureAnnotation = 'dev.cosignproject.cosign/signature';
const payloadType = 'application/vnd.dev.cosign.simplesigning.v1+json';

export const signatureTag = (digest: string): string => `${digest.replace(':', '-')}.sig`;

/** The same for each signature of one image. */
export const payloadOf = (reference: string, digest: string): Buffer =>
  Buffer.from(
    JSON.stringify({
      critical: {
        identity: { 'docker-reference': reference },
        image: { 'docker-manifest-digest': digest },
        type: 'cosign container image signature',
      },
      optional: null,
    }),
  );

/** A signature under the tag, as its manifest lists it. */
export interface SignatureLayer {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations?: Data | undefined;
}

const hashFor = ({ asymmetricKeyType }: KeyObject): string | null =>
  asymmetricKeyType === 'ed25519' ? null : 'sha256';

export const signedLayer = (key: KeyObject, payload: Buffer): SignatureLayer => ({
  mediaType: payloadType,
  digest: digestOf(payload),
  size: payload.length,
  annotations: { [signatureAnnotation]: sign(hashFor(key), payload, key).toString('base64') },
});

/** Whether a layer is the signature of this payload by this key: an earlier attempt made it. */
export const isSignedBy = (key: KeyObject, payload: Buffer, { digest, annotations = {} }: SignatureLayer): boolean => {
  const signature = Buffer.from(annotations[signatureAnnotation] ?? '', 'base64');
  return digest === digestOf(payload) && verify(hashFor(key), payload, createPublicKey(key), signature);
};
