// Command lines of etcd and kube-apiserver on loopback. Called by server.ts.
import { join } from 'node:path';
import type { ControlPlaneFiles } from '#local-cluster/real-api-server/certificates.ts';

export interface ControlPlaneLayout {
  readonly dataDir: string;
  readonly files: ControlPlaneFiles;
  readonly tokenFile: string;
  readonly apiPort: number;
  readonly etcdPort: number;
  readonly etcdPeerPort: number;
  /** False: etcd does not wait for the disk; for disposable servers. */
  readonly durable: boolean;
  /** For kube-apiserver. */
  readonly extraFlags: readonly string[];
}

/**
 * Plugins that depend on controllers which do not run here: pods would wait for a service account token, claims and volumes would
 * keep their protection finalizer, nodes their taint.
 */
const disabledPlugins = ['ServiceAccount', 'StorageObjectInUseProtection', 'TaintNodesByCondition'];

export const etcdFlags = ({ dataDir, files, durable, ...ports }: ControlPlaneLayout): string[] => [
  `--data-dir=${join(dataDir, 'etcd')}`,
  '--name=local',
  `--listen-client-urls=https://127.0.0.1:${ports.etcdPort}`,
  `--advertise-client-urls=https://127.0.0.1:${ports.etcdPort}`,
  `--listen-peer-urls=http://127.0.0.1:${ports.etcdPeerPort}`,
  `--initial-advertise-peer-urls=http://127.0.0.1:${ports.etcdPeerPort}`,
  `--initial-cluster=local=http://127.0.0.1:${ports.etcdPeerPort}`,
  `--cert-file=${files.certificate}`,
  `--key-file=${files.key}`,
  `--trusted-ca-file=${files.ca}`,
  '--client-cert-auth',
  '--log-level=warn',
  ...(durable ? [] : ['--unsafe-no-fsync']),
];

export const apiServerFlags = ({ files, tokenFile, extraFlags, ...ports }: ControlPlaneLayout): string[] => [
  `--etcd-servers=https://127.0.0.1:${ports.etcdPort}`,
  `--etcd-cafile=${files.ca}`,
  `--etcd-certfile=${files.clientCertificate}`,
  `--etcd-keyfile=${files.clientKey}`,
  '--bind-address=127.0.0.1',
  `--secure-port=${ports.apiPort}`,
  `--tls-cert-file=${files.certificate}`,
  `--tls-private-key-file=${files.key}`,
  `--token-auth-file=${tokenFile}`,
  `--proxy-client-cert-file=${files.proxyCertificate}`,
  `--proxy-client-key-file=${files.proxyKey}`,
  `--requestheader-client-ca-file=${files.ca}`,
  '--requestheader-allowed-names=front-proxy-client',
  '--requestheader-username-headers=X-Remote-User',
  '--requestheader-group-headers=X-Remote-Group',
  '--requestheader-extra-headers-prefix=X-Remote-Extra-',
  '--authorization-mode=RBAC',
  `--service-account-issuer=https://kubernetes.default.svc`,
  `--service-account-key-file=${files.serviceAccountKey}`,
  `--service-account-signing-key-file=${files.serviceAccountKey}`,
  '--service-cluster-ip-range=10.0.0.0/24',
  // Endpoints may not contain a loopback address.
  '--endpoint-reconciler-type=none',
  '--allow-privileged',
  '--profiling=false',
  `--disable-admission-plugins=${disabledPlugins.join(',')}`,
  ...extraFlags,
];
