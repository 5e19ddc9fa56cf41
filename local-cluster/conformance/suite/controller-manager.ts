// The controllers of the real control plane that cases need: garbage collection and the end of namespaces. Called by servers.ts.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Daemon, startDaemon } from '#local-cluster/real-api-server/process.ts';

const name = 'kube-controller-manager';

/** Assets made elsewhere may lack it. */
export const hasControllerManager = (assetsDir: string): boolean => existsSync(join(assetsDir, name));

export const startControllerManager = (assetsDir: string, kubeconfigPath: string): Promise<Daemon> => {
  const folder = dirname(kubeconfigPath);
  return startDaemon({
    name,
    command: join(assetsDir, name),
    args: [
      `--kubeconfig=${kubeconfigPath}`,
      '--controllers=garbage-collector-controller,namespace-controller',
      '--leader-elect=false',
      '--secure-port=0',
      '--kube-api-qps=200',
      '--kube-api-burst=400',
    ],
    logFile: join(folder, 'logs', 'kube-controller-manager.log'),
    pidFile: join(folder, 'kube-controller-manager.pid'),
  });
};
