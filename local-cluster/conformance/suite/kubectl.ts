// Runs kubectl against a server, with a home of its own for the discovery cache.
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import type { ConformanceServer, KubectlOptions, KubectlResult } from '#local-cluster/conformance/suite/case.ts';

const longestMs = 100_000;

export const runKubectl = (
  server: ConformanceServer,
  args: readonly string[],
  { stdin, onOutput }: KubectlOptions = {},
): Promise<KubectlResult> =>
  new Promise((resolve, reject) => {
    const home = dirname(server.kubeconfigPath);
    const child = spawn('kubectl', [`--cache-dir=${join(home, 'kube-cache')}`, ...args], {
      env: { ...process.env, KUBECONFIG: server.kubeconfigPath, HOME: home, KUBECTL_EXTERNAL_DIFF: 'diff -u -N' },
      stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      timeout: longestMs,
    });
    let stdout = '';
    let stderr = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
      onOutput?.(stdout, () => child.kill());
    });
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? -1, stdout, stderr }));
    child.stdin?.end(stdin);
  });
