// A sigstore for tests: a certificate authority and a transparency log, and signatures by identities that it certified.
import 'reflect-metadata';
import { KeyObject, createHash, generateKeyPairSync, sign, type webcrypto } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { type SimpleSignature, payloadOf, signBytes } from '#test/support/cosign.ts';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const fulcioIssuer = '1.3.6.1.4.1.57264.1.8';

const newKeys = () =>
  crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>;

/** A short text as UTF8String in DER. */
const utf8String = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0x0c, Buffer.byteLength(text)]), Buffer.from(text)]);

export interface Sigstore {
  /** `trusted_root.json`. */
  readonly root: string;
  /** As annotations next to a payload. `loggedAt`: the time in the log; the certificate is valid for ten minutes from `at` on. */
  sign(digest: string, by: Signing): Promise<SimpleSignature>;
}

interface Signing {
  readonly issuer: string;
  readonly subject: string;
  readonly at?: Date;
  readonly loggedAt?: Date;
  /** Without an entry in the log. */
  readonly isUnlogged?: boolean;
}

export const createSigstore = async (): Promise<Sigstore> => {
  const authority = await newKeys();
  const log = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const logKey = log.publicKey.export({ type: 'spki', format: 'der' });
  const logId = createHash('sha256').update(logKey).digest();
  const start = new Date('2020-01-01');
  const ca = await X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=test, O=test',
    notBefore: start,
    notAfter: new Date('2100-01-01'),
    keys: authority,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await SubjectKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  const issue = async ({ issuer, subject, at = new Date() }: Signing) => {
    const keys = await newKeys();
    const certificate = await X509CertificateGenerator.create({
      serialNumber: '02',
      issuer: ca.subject,
      notBefore: at,
      notAfter: new Date(at.getTime() + 600_000),
      publicKey: keys.publicKey,
      signingKey: authority.privateKey,
      signingAlgorithm: algorithm,
      extensions: [
        new SubjectAlternativeNameExtension([{ type: 'url', value: subject }], true),
        new Extension(fulcioIssuer, false, utf8String(issuer)),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.3']),
        await AuthorityKeyIdentifierExtension.create(authority.publicKey),
      ],
    });
    return { certificate, privateKey: KeyObject.from(keys.privateKey) };
  };
  const entryOf = (payload: Buffer, signature: string, certificate: string, loggedAt: Date): string => {
    const hash = { algorithm: 'sha256', value: createHash('sha256').update(payload).digest('hex') };
    const publicKey = { content: Buffer.from(certificate).toString('base64') };
    const spec = { data: { hash }, signature: { content: signature, publicKey } };
    const body = JSON.stringify({ apiVersion: '0.0.1', kind: 'hashedrekord', spec });
    const entry = {
      body: Buffer.from(body).toString('base64'),
      integratedTime: Math.floor(loggedAt.getTime() / 1000),
      logID: logId.toString('hex'),
      logIndex: 7,
    };
    const promise = sign('sha256', Buffer.from(JSON.stringify(entry)), log.privateKey).toString('base64');
    return JSON.stringify({ SignedEntryTimestamp: promise, Payload: entry });
  };
  return {
    root: JSON.stringify({
      mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
      tlogs: [
        {
          baseUrl: 'https://log.example',
          hashAlgorithm: 'SHA2_256',
          publicKey: {
            rawBytes: logKey.toString('base64'),
            keyDetails: 'PKIX_ECDSA_P256_SHA_256',
            validFor: { start: start.toISOString() },
          },
          logId: { keyId: logId.toString('base64') },
        },
      ],
      certificateAuthorities: [
        {
          subject: { organization: 'test', commonName: 'test' },
          uri: 'https://ca.example',
          certChain: { certificates: [{ rawBytes: Buffer.from(ca.rawData).toString('base64') }] },
          validFor: { start: start.toISOString() },
        },
      ],
      ctlogs: [],
      timestampAuthorities: [],
    }),
    sign: async (digest, signing) => {
      const { certificate, privateKey } = await issue(signing);
      const payload = payloadOf(digest);
      const signature = signBytes({ privateKey, publicKey: privateKey }, payload);
      const pem = certificate.toString('pem');
      const { isUnlogged = false, loggedAt = new Date((signing.at ?? new Date()).getTime() + 60_000) } = signing;
      const logged = isUnlogged ? {} : { 'dev.sigstore.cosign/bundle': entryOf(payload, signature, pem, loggedAt) };
      return { payload, signature, annotations: { 'dev.sigstore.cosign/certificate': pem, ...logged } };
    },
  };
};
