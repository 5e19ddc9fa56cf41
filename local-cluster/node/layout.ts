// Names, addresses and paths of the node. One node per machine: its link, its networks and its control group have fixed names.
import { join } from 'node:path';
import { InvalidInput } from '#shared/runtime/errors.ts';

export const nodeName = 'bullion-node';

/** On a link of its own: the API server, the kubelet and DNS listen where no other machine reaches them. */
export const network = {
  link: 'bullion0',
  node: '10.197.0.1',
  pods: '10.197.1.0/24',
  services: '10.197.2.0/24',
  /** Of the Service `kubernetes`. */
  apiService: '10.197.2.1',
  apiPort: 6443,
} as const;

/** Below each controller of cgroup v1. */
export const cgroup = 'bullion-node';

export const defaultDataDir = '/var/lib/bullion-node';

export interface NodePaths {
  readonly dataDir: string;
  readonly pki: string;
  readonly logs: string;
  readonly pids: string;
  readonly config: string;
  /** Of containerd. */
  readonly root: string;
  readonly state: string;
  readonly socket: string;
  readonly kubelet: string;
  readonly volumes: string;
  readonly kubeconfig: string;
}

/** What Linux accepts as the path of a socket, less what is appended to the data directory. */
const longest = 50;

/** Throws InvalidInput for a data directory in which no socket can be made. */
export const pathsOf = (dataDir: string): NodePaths => {
  if (dataDir.length > longest)
    throw new InvalidInput(
      `${dataDir} is too long for the sockets in it: choose a --data-dir of ${longest} characters`,
    );
  const at = (name: string): string => join(dataDir, name);
  return {
    dataDir,
    pki: at('pki'),
    logs: at('logs'),
    pids: at('pids'),
    config: at('config'),
    root: at('containerd'),
    state: at('run'),
    socket: at('run/containerd.sock'),
    kubelet: at('kubelet'),
    volumes: at('volumes'),
    kubeconfig: at('kubeconfig'),
  };
};
