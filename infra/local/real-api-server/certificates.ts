// Keys and certificates of the real control plane: one authority, one serving certificate, one client certificate for etcd.
// Called by server.ts at every start; what exists on disk and is still good is kept.

// x509 builds on tsyringe, which wants this first.
import 'reflect-metadata';
import { generateKeyPairSync, randomBytes, webcrypto } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
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
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const validMs = 10 * 365 * 24 * 3600 * 1000;

/** Paths of PEM files, all in one folder that only the user can read. */
export interface ControlPlaneFiles {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
  /** What etcd accepts from kube-apiserver. */
  readonly clientCertificate: string;
  readonly clientKey: string;
  /** What kube-apiserver shows to extension servers. */
  readonly proxyCertificate: string;
  readonly proxyKey: string;
  readonly serviceAccountKey: string;
}

interface Authority {
  readonly certificate: X509Certificate;
  readonly keys: CryptoKeyPair;
}

type CryptoKeyPair = webcrypto.CryptoKeyPair;

/** Ensures the files in `folder`. A folder that was written only in part is written anew. */
export const ensureControlPlaneFiles = async (folder: string): Promise<ControlPlaneFiles> => {
  const files: ControlPlaneFiles = {
    ca: join(folder, 'ca.pem'),
    certificate: join(folder, 'server.pem'),
    key: join(folder, 'server.key'),
    clientCertificate: join(folder, 'client.pem'),
    clientKey: join(folder, 'client.key'),
    proxyCertificate: join(folder, 'front-proxy-client.pem'),
    proxyKey: join(folder, 'front-proxy-client.key'),
    serviceAccountKey: join(folder, 'service-account.key'),
  };
  if (Object.values(files).every((file) => existsSync(file))) return files;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFiles(files);
  return files;
};

const writeFiles = async (files: ControlPlaneFiles): Promise<void> => {
  const authority = await createAuthority();
  // etcd's HTTP gateway calls etcd itself with the serving certificate.
  const server = await issue(authority, 'bullion-server', [ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]);
  const client = await issue(authority, 'bullion-etcd-client', [ExtendedKeyUsage.clientAuth]);
  const proxy = await issue(authority, 'front-proxy-client', [ExtendedKeyUsage.clientAuth]);
  await writePrivate(files.proxyCertificate, proxy.certificate);
  await writePrivate(files.proxyKey, proxy.key);
  await writePrivate(files.ca, authority.certificate.toString('pem'));
  await writePrivate(files.certificate, server.certificate);
  await writePrivate(files.key, server.key);
  await writePrivate(files.clientCertificate, client.certificate);
  await writePrivate(files.clientKey, client.key);
  await writePrivate(files.serviceAccountKey, generateServiceAccountKey());
};

const writePrivate = (file: string, text: string): Promise<void> => writeFile(file, text, { mode: 0o600 });

const generateKeys = (): Promise<CryptoKeyPair> => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);

const pemOf = async (keys: CryptoKeyPair): Promise<string> =>
  `${PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')}\n`;

/** kube-apiserver takes the public half from it only in this form. */
const generateServiceAccountKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'sec1', format: 'pem' }).toString();

const validity = () => ({ notBefore: new Date(Date.now() - 3600 * 1000), notAfter: new Date(Date.now() + validMs) });

const createAuthority = async (): Promise<Authority> => {
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
    ],
  });
  return { certificate, keys };
};

const issue = async (
  authority: Authority,
  name: string,
  usages: ExtendedKeyUsage[],
): Promise<{ readonly certificate: string; readonly key: string }> => {
  const keys = await generateKeys();
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `CN=${name}`,
    issuer: authority.certificate.subject,
    ...validity(),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: authority.keys.privateKey,
    extensions: [
      new BasicConstraintsExtension(false),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension(usages),
      new SubjectAlternativeNameExtension([
        { type: 'dns', value: 'localhost' },
        { type: 'dns', value: 'kubernetes.default.svc' },
        { type: 'ip', value: '127.0.0.1' },
      ]),
      await AuthorityKeyIdentifierExtension.create(authority.keys.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await pemOf(keys) };
};

/** Positive, 16 bytes at most, as RFC 5280 wants it. */
const serialNumber = (): string => `01${randomBytes(15).toString('hex')}`;

/** A secret kept in a file, made at the first call. */
export const ensureToken = async (file: string): Promise<string> => {
  if (existsSync(file)) return (await readFile(file, 'utf8')).trim();
  const token = randomBytes(24).toString('hex');
  await writePrivate(file, token);
  return token;
};
