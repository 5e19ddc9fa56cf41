// Command lines of the control plane: as the real API server of tests has them, with everything switched on that needs a node.
import { join } from 'node:path';
import { freePorts } from '#local-cluster/free-ports.ts';
import type { Identities } from '#local-cluster/node/identities.ts';
import { type NodePaths, network } from '#local-cluster/node/layout.ts';
import { apiServerFlags, type ControlPlaneLayout, etcdFlags } from '#local-cluster/real-api-server/flags.ts';

/** A program of the node and its arguments. */
export interface Program {
  readonly name: string;
  readonly args: readonly string[];
}

const nameOf = (flag: string): string => flag.split('=')[0] ?? '';

/** Kubernetes rejects or adds up flags that are given twice. */
export const replaceFlags = (flags: readonly string[], others: readonly string[]): readonly string[] => {
  const replaced = new Set(others.map(nameOf));
  return [...flags.filter((flag) => !replaced.has(nameOf(flag))), ...others];
};

/** `--disable-admission-plugins` is emptied: pods get tokens, claims in use are protected, as in any cluster. */
const apiServerOfNode = ({ files }: Identities): readonly string[] => [
  `--bind-address=${network.node}`,
  `--advertise-address=${network.node}`,
  '--endpoint-reconciler-type=lease',
  `--service-cluster-ip-range=${network.services}`,
  '--authorization-mode=Node,RBAC',
  '--disable-admission-plugins=',
  `--client-ca-file=${files.ca}`,
  `--kubelet-client-certificate=${files.clientCertificate}`,
  `--kubelet-client-key=${files.clientKey}`,
  '--kubelet-preferred-address-types=InternalIP',
];

export const controlPlane = async (paths: NodePaths, identities: Identities): Promise<readonly Program[]> => {
  const { files, tokenFile, kubeconfigs } = identities;
  const [etcdPort = 0, etcdPeerPort = 0] = await freePorts(2);
  const layout: ControlPlaneLayout = {
    dataDir: paths.dataDir,
    files,
    tokenFile,
    apiPort: network.apiPort,
    etcdPort,
    etcdPeerPort,
    durable: false,
    extraFlags: [],
  };
  return [
    { name: 'etcd', args: etcdFlags(layout) },
    { name: 'kube-apiserver', args: replaceFlags(apiServerFlags(layout), apiServerOfNode(identities)) },
    {
      name: 'kube-controller-manager',
      args: [
        `--kubeconfig=${kubeconfigs['kube-controller-manager']}`,
        `--service-account-private-key-file=${files.serviceAccountKey}`,
        `--root-ca-file=${files.ca}`,
        '--use-service-account-credentials',
        '--leader-elect=false',
        '--secure-port=0',
        `--flex-volume-plugin-dir=${join(paths.dataDir, 'no-plugins')}`,
      ],
    },
    {
      name: 'kube-scheduler',
      args: [`--kubeconfig=${kubeconfigs['kube-scheduler']}`, '--leader-elect=false', '--secure-port=0'],
    },
  ];
};
