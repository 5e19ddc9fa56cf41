// A function behind Knative's own queue-proxy, as in a pod: idle connections, ten thousand requests, and the termination of the pod.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { findKnative } from '#local-cluster/envtest/knative/assets.ts';
import { freePorts, isFreeEverywhere } from '#local-cluster/free-ports.ts';
import { kubeconfigFor } from '#test/support/kubeconfig.ts';

const knative = findKnative(process.env);
/** queue-proxy's fixed ports: administration and metrics. */
const fixedPorts = { admin: 8022, metrics: [9090, 9091] } as const;
const allPorts = [fixedPorts.admin, ...fixedPorts.metrics];
const root = join(import.meta.dirname, '../../..');

const canRun = knative !== undefined && (await Promise.all(allPorts.map(isFreeEverywhere))).every(Boolean);
if (!canRun) {
  const why = knative === undefined ? 'npm run envtest:knative builds it' : `it needs ports ${allPorts.join()}`;
  console.warn(`test with queue-proxy skipped: ${why}`);
}

/** An event that any function accepts and ignores. */
const event = {
  'ce-specversion': '1.0',
  'ce-id': '1',
  'ce-source': '/test',
  'ce-type': 'dev.knative.apiserver.resource.update',
  'ce-kind': 'Widget',
  'ce-name': 'w',
  'ce-namespace': 'default',
  'ce-apiversion': 'example.dev/v1',
  'content-type': 'application/json',
};
const body = JSON.stringify({
  apiVersion: 'example.dev/v1',
  kind: 'Widget',
  metadata: { name: 'w', namespace: 'default', uid: 'u' },
});

describe.skipIf(!canRun)('behind queue-proxy', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bullion-queue-'));
  const children: ChildProcess[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: 20, maxFreeSockets: 20 });
  let fn: ChildProcess;
  let queue: ChildProcess;
  let url: string;

  const start = (program: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess => {
    const child = spawn(program, args, {
      cwd: root,
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr?.resume();
    children.push(child);
    return child;
  };
  const send = (path = '/'): Promise<number> =>
    new Promise((resolve, reject) => {
      const asked = request(`${url}${path}`, { method: 'POST', agent, headers: event }, (response) => {
        response.resume();
        response.once('end', () => resolve(response.statusCode ?? 0));
      });
      asked.once('error', reject);
      asked.end(body);
    });
  /** Counts responses by status. */
  const burst = async (count: number, into: Map<number, number>): Promise<void> => {
    let left = count;
    const worker = async () => {
      while (left > 0) {
        left -= 1;
        const status = await send();
        into.set(status, (into.get(status) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: 20 }, worker));
  };

  beforeAll(async () => {
    const [port = 0, proxyPort = 0, tlsPort = 0] = await freePorts(3);
    writeFileSync(join(folder, 'kubeconfig'), kubeconfigFor());
    url = `http://127.0.0.1:${proxyPort}`;
    fn = start(process.execPath, ['functions/initialize/index.ts'], {
      PORT: String(port),
      KUBECONFIG: join(folder, 'kubeconfig'),
      LOG_LEVEL: 'error',
    });
    queue = start(knative!.queue, [], {
      CONTAINER_CONCURRENCY: '10',
      QUEUE_SERVING_PORT: String(proxyPort),
      QUEUE_SERVING_TLS_PORT: String(tlsPort),
      USER_PORT: String(port),
      REVISION_TIMEOUT_SECONDS: '60',
      REVISION_RESPONSE_START_TIMEOUT_SECONDS: '60',
      REVISION_IDLE_TIMEOUT_SECONDS: '0',
      SERVING_NAMESPACE: 'bullion-system',
      SERVING_SERVICE: 'initialize',
      SERVING_CONFIGURATION: 'initialize',
      SERVING_REVISION: 'initialize-00001',
      SERVING_POD: 'initialize-1',
      SERVING_POD_IP: '127.0.0.1',
      SERVING_LOGGING_CONFIG: '',
      SERVING_LOGGING_LEVEL: 'error',
      SERVING_READINESS_PROBE: JSON.stringify({
        httpGet: { path: '/readyz', port, host: '127.0.0.1', scheme: 'HTTP' },
      }),
      SYSTEM_NAMESPACE: 'knative-serving',
    });
    const isUp = async () => {
      const status = await send();
      if (status !== 204) throw new Error(`queue-proxy answers ${status}`);
    };
    await vi.waitFor(isUp, { timeout: 100_000, interval: 100 });
  }, 240_000);
  afterAll(() => {
    agent.destroy();
    for (const child of children) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  it('ten thousand requests over kept-alive connections are all answered, also after they were idle', async () => {
    const answers = new Map<number, number>();
    for (const idleMs of [0, 4_900, 0, 5_100, 0]) {
      // Node's own limit for idle connections is five seconds: with it, later requests would find their connection closed.
      await wait(idleMs);
      await burst(2_000, answers);
    }
    expect(Object.fromEntries(answers)).toEqual({ 204: 10_000 });
  }, 120_000);

  it('a pod that is terminated answers all requests that still arrive, drains, and both containers end by themselves', async () => {
    const ended = (child: ChildProcess) => new Promise<number | null>((resolve) => child.once('exit', resolve));
    const [ofQueue, ofFunction] = [ended(queue), ended(fn)];
    const answers = new Map<number, number>();
    let isOver = false;
    // Requests from endpoints that are not up to date yet, for a while.
    const stragglers = (async () => {
      while (!isOver) await burst(20, answers).then(() => wait(50));
    })();
    // As the kubelet terminates a pod: SIGTERM to queue-proxy, while the hook of the function's container waits for the drain.
    const drained = fetch(`http://127.0.0.1:${fixedPorts.admin}/wait-for-drain`);
    queue.kill('SIGTERM');
    await wait(2_000);
    isOver = true;
    await stragglers;
    expect([...answers.keys()]).toEqual([204]);
    expect((await drained).status).toBe(200);
    fn.kill('SIGTERM');
    expect(await ofFunction).toBe(0);
    expect(await ofQueue).toBe(0);
  }, 120_000);
});
