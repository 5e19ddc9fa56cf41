// Public keys in PEM, and whether one of them signed some bytes. Pure; bytes are of strangers, and nothing here throws for them.
import { type KeyObject, createHash, createPublicKey, verify } from 'node:crypto';

export interface TrustedKey {
  /** `SHA256:` and the hex digest of the key in DER, as `openssl pkey -pubin -outform der | sha256sum` prints it. */
  readonly fingerprint: string;
  readonly key: KeyObject;
}

export interface ReadKeys {
  readonly keys: readonly TrustedKey[];
  /** Why a block that looked like a key is none; each completes "the keys …". */
  readonly problems: readonly string[];
}

const block = /-----BEGIN ((?:RSA )?PUBLIC KEY|CERTIFICATE|[A-Z ]*PRIVATE KEY)-----[\s\S]{1,20000}?-----END \1-----/g;

/** By curve, the digests that signers use: that of the curve, and sha256, which cosign took for every key. */
const curves: Readonly<Record<string, readonly string[]>> = {
  prime256v1: ['sha256'],
  secp384r1: ['sha256', 'sha384'],
  secp521r1: ['sha256', 'sha512'],
};
const leastRsaBits = 2048;

const digestsFor = ({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): readonly (string | null)[] => {
  switch (asymmetricKeyType) {
    case 'ec':
      return curves[asymmetricKeyDetails.namedCurve ?? ''] ?? [];
    case 'rsa':
      return (asymmetricKeyDetails.modulusLength ?? 0) >= leastRsaBits ? ['sha256'] : [];
    case 'ed25519':
      return [null];
    default:
      return [];
  }
};

const readBlock = (pem: string, label: string): TrustedKey | string => {
  if (label.includes('PRIVATE'))
    return 'hold a private key, which belongs to the signer alone: remove it, and name the public one';
  if (label === 'CERTIFICATE') return 'hold a certificate: name the public key, or identities with a trustRoot';
  try {
    const key = createPublicKey(pem);
    if (digestsFor(key).length === 0)
      return `hold a key of type ${key.asymmetricKeyType}, size or curve that is not accepted: ECDSA (P-256, P-384, P-521), RSA from ${leastRsaBits} bits on, or Ed25519`;
    const der = key.export({ type: 'spki', format: 'der' });
    return { key, fingerprint: `SHA256:${createHash('sha256').update(der).digest('hex')}` };
  } catch {
    return 'hold a PUBLIC KEY block that cannot be read as PEM';
  }
};

export const readPublicKeys = (texts: readonly string[]): ReadKeys => {
  const read = texts.flatMap((text) => [...text.matchAll(block)].map(([pem, label = '']) => readBlock(pem, label)));
  return {
    keys: read.filter((one): one is TrustedKey => typeof one !== 'string'),
    problems: read.filter((one) => typeof one === 'string'),
  };
};

const hasSigned = (key: KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean =>
  digestsFor(key).some((digest) => {
    try {
      return verify(digest, bytes, key, signature);
    } catch {
      return false;
    }
  });

/** The first of the keys that signed exactly these bytes. */
export const signerOf = (
  keys: readonly TrustedKey[],
  bytes: Uint8Array,
  signature: Uint8Array,
): TrustedKey | undefined => keys.find(({ key }) => hasSigned(key, bytes, signature));
