// Who may call whom on the node: certificates of one authority, and a token and a kubeconfig for each program.
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createAuthority, openAuthority } from '#local-cluster/api-server/auth/certificates.ts';
import { type NodePaths, network, nodeName } from '#local-cluster/node/layout.ts';
import { buildKubeconfig, type ControlPlaneFiles } from '#local-cluster/real-api-server/certificates.ts';

/** Users as Kubernetes' own roles know them. */
const users = {
  admin: { name: 'admin', group: 'system:masters' },
  kubelet: { name: `system:node:${nodeName}`, group: 'system:nodes' },
  'kube-scheduler': { name: 'system:kube-scheduler', group: '' },
  'kube-controller-manager': { name: 'system:kube-controller-manager', group: '' },
  'kube-proxy': { name: 'system:kube-proxy', group: '' },
} as const;

type User = keyof typeof users;

export interface Identities {
  readonly files: ControlPlaneFiles;
  readonly tokenFile: string;
  /** Path of the kubeconfig of each. */
  readonly kubeconfigs: Readonly<Record<User, string>>;
}

const hosts = [
  'localhost',
  '127.0.0.1',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
  network.node,
  network.apiService,
];

const writePrivate = async (file: string, text: string): Promise<string> => {
  await writeFile(file, text, { mode: 0o600 });
  return file;
};

export const createIdentities = async ({ pki, kubeconfig }: NodePaths): Promise<Identities> => {
  await mkdir(pki, { recursive: true, mode: 0o700 });
  const write = (name: string, text: string): Promise<string> => writePrivate(join(pki, name), text);
  const { certificate: caPem, key } = await createAuthority();
  const { issue } = await openAuthority({ certificate: caPem, key });
  const [server, client, proxy] = [
    await issue(nodeName, hosts, ['serverAuth', 'clientAuth']),
    await issue('kube-apiserver', []),
    await issue('front-proxy-client', []),
  ];
  const files: ControlPlaneFiles = {
    ca: await write('ca.pem', caPem),
    certificate: await write('server.pem', server.certificate),
    key: await write('server.key', server.key),
    clientCertificate: await write('client.pem', client.certificate),
    clientKey: await write('client.key', client.key),
    proxyCertificate: await write('front-proxy-client.pem', proxy.certificate),
    proxyKey: await write('front-proxy-client.key', proxy.key),
    serviceAccountKey: await write('service-account.key', serviceAccountKey()),
  };
  const lines: string[] = [];
  const url = `https://${network.node}:${network.apiPort}`;
  const configOf = async (user: User): Promise<string> => {
    const token = randomBytes(24).toString('hex');
    const { name, group } = users[user];
    lines.push(`${token},${name},${randomUUID()},"${group}"`);
    const file = user === 'admin' ? kubeconfig : join(pki, `${user}.kubeconfig`);
    return writePrivate(file, buildKubeconfig({ url, caPem, token }));
  };
  const kubeconfigs = {
    admin: await configOf('admin'),
    kubelet: await configOf('kubelet'),
    'kube-scheduler': await configOf('kube-scheduler'),
    'kube-controller-manager': await configOf('kube-controller-manager'),
    'kube-proxy': await configOf('kube-proxy'),
  };
  return { files, kubeconfigs, tokenFile: await write('tokens.csv', `${lines.join('\n')}\n`) };
};

/** kube-apiserver accepts the public key only in this form. */
const serviceAccountKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'sec1', format: 'pem' }).toString();
