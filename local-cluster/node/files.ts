// Configuration files of the programs of the node. Called by start.ts.
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Identities } from '#local-cluster/node/identities.ts';
import { type NodePaths, cgroup, network, nodeName } from '#local-cluster/node/layout.ts';

/** The image that holds the namespaces of a pod, and runs tests of the node itself. */
export const probeImage = 'docker.io/bullion/probe:node';

/**
 * `restrict_oom_score_adj`: without CAP_SYS_RESOURCE no process may be protected more than containerd is, and runc fails with nothing but "can't get final child's
 * PID from pipe: EOF".
 */
const containerd = ({ root, state, socket, dataDir, config }: NodePaths): string => `
version = 2
root = "${root}"
state = "${join(state, 'containerd')}"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "${socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${join(dataDir, 'opt')}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${probeImage}"
  restrict_oom_score_adj = true
  device_ownership_from_security_context = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "${join(state, 'runc')}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${join(config, 'cni')}"
`;

/** Each pod has a link to the host alone, over which all of its traffic is routed: Services work between pods without filtering bridges. */
const cni = ({ dataDir }: NodePaths): object => ({
  cniVersion: '0.4.0',
  name: 'bullion',
  plugins: [
    {
      type: 'ptp',
      ipMasq: false,
      ipam: {
        type: 'host-local',
        dataDir: join(dataDir, 'addresses'),
        ranges: [[{ subnet: network.pods }]],
        routes: [{ dst: '0.0.0.0/0' }],
      },
    },
  ],
});

/** Images cannot be pulled again, so that none is collected; the disk is the machine's, so that it evicts late. */
const kubelet = ({ dataDir, socket, config }: NodePaths, { files }: Identities): object => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  address: network.node,
  readOnlyPort: 0,
  authentication: { anonymous: { enabled: false }, webhook: { enabled: false }, x509: { clientCAFile: files.ca } },
  authorization: { mode: 'AlwaysAllow' },
  failCgroupV1: false,
  failSwapOn: false,
  cgroupDriver: 'cgroupfs',
  cgroupRoot: `/${cgroup}`,
  clusterDomain: 'cluster.local',
  clusterDNS: [network.node],
  resolvConf: join(config, 'resolv.conf'),
  containerRuntimeEndpoint: `unix://${socket}`,
  makeIPTablesUtilChains: false,
  podLogsDir: join(dataDir, 'pod-logs'),
  volumePluginDir: join(dataDir, 'no-plugins'),
  imageGCHighThresholdPercent: 100,
  evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '2%', 'imagefs.available': '2%' },
});

/** `conntrack`: the machine's limits stay as they are. */
const proxy = ({ kubeconfigs }: Identities): object => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'nftables',
  hostnameOverride: nodeName,
  bindAddress: network.node,
  healthzBindAddress: '127.0.0.1:10256',
  metricsBindAddress: '127.0.0.1:10249',
  clusterCIDR: network.pods,
  clientConnection: { kubeconfig: kubeconfigs['kube-proxy'] },
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
});

const dns = ({ kubeconfigs }: Identities): string => `
.:53 {
    bind ${network.node}
    errors
    cache 5
    kubernetes cluster.local in-addr.arpa {
        kubeconfig ${kubeconfigs.admin}
        pods insecure
    }
}
`;

/** Content of each file, by its name in the folder for configuration. */
export const configFiles = (paths: NodePaths, identities: Identities): Readonly<Record<string, string>> => ({
  'containerd.toml': containerd(paths),
  'cni/10-bullion.conflist': JSON.stringify(cni(paths)),
  'kubelet.yaml': stringify(kubelet(paths, identities)),
  'proxy.yaml': stringify(proxy(identities)),
  Corefile: dns(identities),
  'resolv.conf': '',
});
