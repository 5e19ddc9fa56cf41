// Keys and certificates of the real control plane: one authority, one serving certificate, one client certificate for etcd.
// Called by server.ts at every start; existing valid files are kept.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { createAuthority, openAuthority } from '#local-cluster/api-server/auth/certificates.ts';

// The kubeconfig of a local API server.

export const buildKubeconfig = (access: { readonly url: string; readonly caPem: string; readonly token: string }) =>
  stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bullion',
    clusters: [
      {
        name: 'bullion',
        cluster: {
          server: access.url,
          'certificate-authority-data': Buffer.from(access.caPem).toString('base64'),
        },
      },
    ],
    users: [{ name: 'admin', user: { token: access.token } }],
    contexts: [{ name: 'bullion', context: { cluster: 'bullion', user: 'admin', namespace: 'default' } }],
  });

/** Paths of PEM files, all in one folder that only the user can read. */
export interface ControlPlaneFiles {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
  /** The client certificate of kube-apiserver for etcd. */
  readonly clientCertificate: string;
  readonly clientKey: string;
  /** The client certificate of kube-apiserver for extension servers. */
  readonly proxyCertificate: string;
  readonly proxyKey: string;
  readonly serviceAccountKey: string;
}

/** Host names and addresses of the servers. */
const hosts = ['localhost', 'kubernetes.default.svc', '127.0.0.1'];

/** Ensures the files in `folder`. An incomplete folder is written again. */
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
  const { certificate, key } = await createAuthority();
  const { issue } = await openAuthority({ certificate, key });
  // etcd's HTTP gateway calls etcd itself with the serving certificate.
  const server = await issue('bullion-server', hosts, ['serverAuth', 'clientAuth']);
  const client = await issue('bullion-etcd-client', []);
  const proxy = await issue('front-proxy-client', []);
  await writePrivate(files.proxyCertificate, proxy.certificate);
  await writePrivate(files.proxyKey, proxy.key);
  await writePrivate(files.ca, certificate);
  await writePrivate(files.certificate, server.certificate);
  await writePrivate(files.key, server.key);
  await writePrivate(files.clientCertificate, client.certificate);
  await writePrivate(files.clientKey, client.key);
  await writePrivate(files.serviceAccountKey, generateServiceAccountKey());
};

const writePrivate = (file: string, text: string): Promise<void> => writeFile(file, text, { mode: 0o600 });

/** kube-apiserver accepts the public key only in this form. */
const generateServiceAccountKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'sec1', format: 'pem' }).toString();

/** A secret stored in a file, created at the first call. */
export const ensureToken = async (file: string): Promise<string> => {
  if (existsSync(file)) return (await readFile(file, 'utf8')).trim();
  const token = randomBytes(24).toString('hex');
  await writePrivate(file, token);
  return token;
};
