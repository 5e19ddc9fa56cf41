// Runs kubectl against a server, with a home of its own for the discovery cache.
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import type { ConformanceServer, KubectlOptions, KubectlResult } from '#test/conformance/suite/case.ts';

export const runKubectl = (
  server: ConformanceServer,
  args: readonly string[],
  { stdin, timeoutMs = 30_000 }: KubectlOptions = {},
): Promise<KubectlResult> =>
  new Promise((resolve, reject) => {
    const home = dirname(server.kubeconfigPath);
    const child = spawn('kubectl', [`--cache-dir=${join(home, 'kube-cache')}`, ...args], {
      env: { ...process.env, KUBECONFIG: server.kubeconfigPath, HOME: home, KUBECTL_EXTERNAL_DIFF: 'diff -u -N' },
      stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      timeout: timeoutMs,
    });
    let stdout = '';
    let stderr = '';
    child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? -1, stdout, stderr }));
    child.stdin?.end(stdin);
  });
