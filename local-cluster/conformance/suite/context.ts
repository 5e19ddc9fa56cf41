// Builds the context of one case. Called by run.ts for each case.
import { deepStrictEqual } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type {
  CaseContext,
  ConformanceServer,
  KubectlOptions,
  KubectlResult,
} from '#local-cluster/conformance/suite/case.ts';
import type { Http } from '#local-cluster/conformance/suite/http.ts';
import type { JsonValue } from '#local-cluster/conformance/suite/json.ts';
import { normalise, normaliseText } from '#local-cluster/conformance/suite/normalise.ts';
import type { WebhookServer } from '#local-cluster/conformance/suite/webhook-server.ts';
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';

export interface ContextParts {
  readonly server: ConformanceServer;
  readonly http: Http;
  readonly webhooks: WebhookServer;
  /** The responses of the real server, by label; or, while recording, the place to store them. */
  readonly recording: Record<string, JsonValue>;
  readonly records: boolean;
}

export interface OwnedContext {
  readonly context: CaseContext;
  readonly finish: () => Promise<void>;
}

/** A letter and seven characters that occur in no word. */
const newId = (): string =>
  `q${BigInt(`0x${randomBytes(6).toString('hex')}`)
    .toString(36)
    .padStart(7, '0')
    .slice(-7)}`;

export const createContext = (parts: ContextParts): OwnedContext => {
  const { server, http, webhooks, recording, records } = parts;
  const id = newId();
  const actions: (() => Promise<unknown>)[] = [];
  const cleanup = (action: () => Promise<unknown>): void => void actions.push(action);
  let namespace: Promise<string> | undefined;
  const context: CaseContext = {
    server,
    id,
    cleanup,
    namespace: () => (namespace ??= createNamespace(http, id)),
    call: http.call,
    watch: async (path, options) => {
      const watch = await http.watch(path, options);
      cleanup(async () => watch.stop());
      return watch;
    },
    kubectl: (args, options) => runKubectl(server, args, options),
    webhook: (handler) => webhooks.open(id, handler),
    same: (name, value) => {
      const label = normaliseText(name, { id, url: server.url });
      const seen = normalise(value, { id, url: server.url });
      if (records) recording[label] = seen;
      else deepStrictEqual(seen, recording[label], `${label}: not what the real server answers`);
    },
  };
  const finish = async (): Promise<void> => {
    webhooks.closeCase(id);
    for (const action of actions.reverse()) await action().catch(() => undefined);
  };
  return { context, finish };
};

/** It is deleted with its server: emptying hundreds of them would only delay the cases that wait for controllers. */
const createNamespace = async (http: Http, id: string): Promise<string> => {
  const name = `ns-${id}`;
  const answer = await http.call('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { case: id } } },
  });
  if (answer.status !== 201) throw new Error(`namespace ${name}: ${JSON.stringify(answer.body)}`);
  return name;
};

/** Runs kubectl with a server, and a separate home for the discovery cache. */
const longestMs = 100_000;

const runKubectl = (
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
