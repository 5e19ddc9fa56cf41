// The server's own certificate authority, stored in the data directory, and the certificates it issues: the server's, and those of
// webhooks in the same process.

// x509 depends on tsyringe, which must be imported first.
import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { keepFile } from './keep.ts';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const validMs = 10 * 365 * 24 * 3600 * 1000;

export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

type Usage = 'serverAuth' | 'clientAuth';

export interface Authority {
  readonly caPem: string;
  /** A server certificate for host names and addresses, as PEM; without any, a client certificate; or one for the given `usages`. */
  readonly issue: (name: string, hosts: readonly string[], usages?: readonly Usage[]) => Promise<KeyPair>;
}

const serialNumber = (): string => `01${randomBytes(15).toString('hex')}`;

const validity = () => ({ notBefore: new Date(Date.now() - 3600 * 1000), notAfter: new Date(Date.now() + validMs) });

const generateKeys = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);

const toPem = async (key: webcrypto.CryptoKey): Promise<string> =>
  `${PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')}\n`;

export const createAuthority = async (): Promise<KeyPair> => {
  const keys = await generateKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: 'CN=bullion-local-ca',
    ...validity(),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign | KeyUsageFlags.digitalSignature, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await toPem(keys.privateKey) };
};

const loadPair = async (dataDir: string): Promise<KeyPair> => {
  const files = { certificate: join(dataDir, 'ca.crt'), key: join(dataDir, 'ca.key') };
  if (existsSync(files.certificate) && existsSync(files.key)) {
    return { certificate: await readFile(files.certificate, 'utf8'), key: await readFile(files.key, 'utf8') };
  }
  const pair = await createAuthority();
  keepFile(files.key, pair.key);
  keepFile(files.certificate, pair.certificate);
  return pair;
};

const namesOf = (hosts: readonly string[]): SubjectAlternativeNameExtension =>
  new SubjectAlternativeNameExtension(hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host })));

/** The authority of a data directory, created at its first use. */
export const loadAuthority = async (dataDir: string): Promise<Authority> => openAuthority(await loadPair(dataDir));

const usagesFor = (hosts: readonly string[]): readonly Usage[] => [hosts.length === 0 ? 'clientAuth' : 'serverAuth'];

export const openAuthority = async (pair: KeyPair): Promise<Authority> => {
  const authority = new X509Certificate(pair.certificate);
  const signingKey = await webcrypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(pair.key), algorithm, false, [
    'sign',
  ]);
  const issue: Authority['issue'] = async (name, hosts, usages = usagesFor(hosts)) => {
    const keys = await generateKeys();
    const certificate = await X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject: `CN=${name}`,
      issuer: authority.subject,
      ...validity(),
      signingAlgorithm: algorithm,
      publicKey: keys.publicKey,
      signingKey,
      extensions: [
        new BasicConstraintsExtension(false),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension(usages.map((usage) => ExtendedKeyUsage[usage])),
        ...(hosts.length === 0 ? [] : [namesOf(hosts)]),
        await AuthorityKeyIdentifierExtension.create(authority),
      ],
    });
    return { certificate: certificate.toString('pem'), key: await toPem(keys.privateKey) };
  };
  return { caPem: pair.certificate, issue };
};
