// Issues certificates: an authority, and server certificates signed by it. ECDSA on P-256, according to RFC 5280.
import {
  type KeyObject,
  X509Certificate,
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from 'node:crypto';

/** The ASN.1 values used in a certificate, in DER (X.690). */
const lengthOf = (size: number): Buffer => {
  if (size < 0x80) return Buffer.from([size]);
  const bytes = Buffer.from(size.toString(16).padStart(size > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
};

/** Up to 65535 bytes. */
const value = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
};

const sequence = (...parts: readonly Uint8Array[]): Buffer => value(0x30, ...parts);
const set = (...parts: readonly Uint8Array[]): Buffer => value(0x31, ...parts);
const octets = (content: Uint8Array): Buffer => value(0x04, content);
/** Whole bytes. */
const bits = (content: Uint8Array, unused = 0): Buffer => value(0x03, Buffer.from([unused]), content);
const utf8 = (text: string): Buffer => value(0x0c, Buffer.from(text));
const yes = value(0x01, Buffer.from([0xff]));

/** An integer of `bytes` that is positive whatever its first bit is. */
const positive = (bytes: Uint8Array): Buffer =>
  value(0x02, (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);

const objectId = (dotted: string): Buffer => {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return value(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
};

const base128 = (number: number): readonly number[] => {
  const digits = [number & 0x7f];
  for (let left = number >> 7; left > 0; left >>= 7) digits.unshift(0x80 | (left & 0x7f));
  return digits;
};

/** RFC 5280 requires a two-digit year until 2049. */
const time = (at: Date): Buffer => {
  const digits = at.toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return at.getUTCFullYear() < 2050 ? value(0x17, Buffer.from(digits.slice(2))) : value(0x18, Buffer.from(digits));
};

/** `[number]` around the content. */
const explicit = (number: number, ...parts: readonly Uint8Array[]): Buffer => value(0xa0 | number, ...parts);
/** `[number]` instead of the tag of the type. */
const implicit = (number: number, content: Uint8Array): Buffer => value(0x80 | number, content);

/** PEM texts. */
export interface Pair {
  readonly certificate: string;
  readonly key: string;
}

export interface Validity {
  readonly from: Date;
  readonly to: Date;
}

const ids = {
  commonName: '2.5.4.3',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  subjectKey: '2.5.29.14',
  keyUsage: '2.5.29.15',
  alternativeNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKey: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
} as const;

const nameOf = (commonName: string): Buffer => sequence(set(sequence(objectId(ids.commonName), utf8(commonName))));

const extension = (id: string, content: Buffer): Buffer => sequence(objectId(id), octets(content));
const critical = (id: string, content: Buffer): Buffer => sequence(objectId(id), yes, octets(content));

const publicKeyOf = (key: KeyObject): Buffer => createPublicKey(key).export({ type: 'spki', format: 'der' });
/** Identifies the issuer in issued certificates; any digest is valid. */
const keyIdOf = (key: KeyObject): Buffer => createHash('sha256').update(publicKeyOf(key)).digest().subarray(0, 20);

interface Certified {
  readonly subject: string;
  readonly key: KeyObject;
  readonly issuer: { readonly name: string; readonly key: KeyObject };
  readonly validity: Validity;
  readonly extensions: readonly Buffer[];
}

const certify = ({ subject, key, issuer, validity, extensions }: Certified): string => {
  const algorithm = sequence(objectId(ids.ecdsaWithSha256));
  const version3 = explicit(0, positive(Buffer.from([2])));
  const body = sequence(
    version3,
    // 128 unpredictable bits; the first byte prevents 0.
    positive(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    nameOf(issuer.name),
    sequence(time(validity.from), time(validity.to)),
    nameOf(subject),
    publicKeyOf(key),
    explicit(
      3,
      sequence(
        extension(ids.subjectKey, octets(keyIdOf(key))),
        extension(ids.authorityKey, sequence(implicit(0, keyIdOf(issuer.key)))),
        ...extensions,
      ),
    ),
  );
  const der = sequence(body, algorithm, bits(sign('sha256', body, issuer.key)));
  return new X509Certificate(der).toString();
};

const newKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

/** Bits of keyUsage, from the left: digitalSignature is the first, keyCertSign and cRLSign the sixth and seventh. */
const usage = { server: bits(Buffer.from([0b1000_0000]), 7), authority: bits(Buffer.from([0b0000_0110]), 1) };

export const createAuthority = (name: string, validity: Validity): Pair => {
  const key = newKey();
  const certificate = certify({
    subject: name,
    key,
    issuer: { name, key },
    validity,
    extensions: [critical(ids.basicConstraints, sequence(yes)), critical(ids.keyUsage, usage.authority)],
  });
  return { certificate, key: pemOf(key) };
};

/** For the first name and the others; the common name in the subject has at most 64 characters. */
export const issueServer = (authority: Pair, names: readonly string[], validity: Validity): Pair => {
  const key = newKey();
  const issuerName = new X509Certificate(authority.certificate).subject.replace(/^CN=/, '');
  const certificate = certify({
    subject: (names[0] ?? '').slice(0, 64),
    key,
    issuer: { name: issuerName, key: createPrivateKey(authority.key) },
    validity,
    extensions: [
      critical(ids.basicConstraints, sequence()),
      critical(ids.keyUsage, usage.server),
      extension(ids.extendedKeyUsage, sequence(objectId(ids.serverAuth))),
      extension(ids.alternativeNames, sequence(...names.map((name) => implicit(2, Buffer.from(name))))),
    ],
  });
  return { certificate, key: pemOf(key) };
};
