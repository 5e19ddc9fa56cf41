// An API server with our kinds and webhooks but without reconcilers, so that a rule sees exactly the objects of its row; and kubectl to send
// requests.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Hono } from 'hono';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import { createAccounts } from '#infra/local/accounts.ts';
import { startAdmission } from '#infra/local/servers.ts';
import { startApiServer } from '#local-cluster/api.ts';
import { snapshotCrds } from '#local-cluster/controllers/snapshots/crds.ts';
import { applyObjects, installCrds } from '#local-cluster/install.ts';
import { longhornCrds } from '#local-cluster/longhorn/crds.ts';
import { buildOpenCrd, operatorCrds, readAccess, readCrds, systemNamespace } from '#infra/local/manifests.ts';
import { choosePorts } from '#infra/local/ports.ts';
import { createUndo } from '#local-cluster/undo.ts';
import { templateVersions } from '#shared/api/foreign/backup.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { flowApiServer } from '#test/support/api-server-kind.ts';

export interface Said {
  readonly stdout: string;
  readonly stderr: string;
}

export interface AdmissionServer {
  /** Of the administrator. */
  readonly kube: KubeClient;
  readonly kubectl: (args: readonly string[], input?: object) => Promise<Said>;
  /** Also removes the data. */
  readonly close: () => Promise<void>;
}

/** Kinds of other products that rules read. */
const foreignCrds = [virtualMachines, templateVersions].map((type) => buildOpenCrd(type));

/** Both admission functions, with the account of this kubeconfig. */
export type StartFunctions = (
  kubeconfigPath: string,
) => Promise<{ readonly app: Hono; readonly close: () => Promise<void> }>;

/** In this process. */
export const asFunctions: StartFunctions = async (kubeconfigPath) => {
  const deps = { kube: createKubeClient(loadKubeConfig(kubeconfigPath)), log: silentLogger };
  const app = new Hono().route('/', createValidate(deps)).route('/', createMutate(deps));
  return { app, close: async () => undefined };
};

/** `prepare` fills the cluster before admission is started. */
export const startAdmissionServer = async (
  prepare: (kube: KubeClient) => Promise<void>,
  startFunctions: StartFunctions = asFunctions,
): Promise<AdmissionServer> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'bullion-admission-'));
  const undo = createUndo();
  undo.add(() => rm(dataDir, { recursive: true, force: true }));
  try {
    const ports = await choosePorts(dataDir);
    const { kubeconfigPath, close } = await startApiServer(flowApiServer, {
      dataDir,
      port: ports.api,
      environment: process.env,
    });
    undo.add(close);
    const kube = createKubeClient(loadKubeConfig(kubeconfigPath));
    await installCrds(kube, [
      ...snapshotCrds,
      ...operatorCrds,
      ...longhornCrds,
      ...foreignCrds,
      ...(await readCrds()),
    ] as readonly KubeObject[]);
    await applyObjects(kube, await readAccess());
    await prepare(kube);
    const functions = await startFunctions(await admissionAccount(kube, kubeconfigPath, dataDir));
    undo.add(functions.close);
    const options = { dataDir, port: ports.admission, log: silentLogger, undo, hasLonghorn: false };
    await startAdmission(kube, { admission: functions.app }, options);
    return { kube, kubectl: kubectlWith(kubeconfigPath, join(dataDir, 'cache')), close: undo.all };
  } catch (error) {
    await undo.all();
    throw error;
  }
};

/** The account used in production. */
const admissionAccount = async (kube: KubeClient, kubeconfigPath: string, dataDir: string): Promise<string> => {
  const dir = join(dataDir, 'accounts');
  const accounts = await createAccounts(kube, ['admission'], { kubeconfigPath, namespace: systemNamespace, dir });
  return accounts.admission;
};

export const kubectlWith =
  (kubeconfigPath: string, cacheDir: string): AdmissionServer['kubectl'] =>
  (args, input) =>
    new Promise((resolve) => {
      const child = execFile(
        'kubectl',
        ['--kubeconfig', kubeconfigPath, '--cache-dir', cacheDir, ...args],
        { maxBuffer: 2 ** 26 },
        (_error, stdout, stderr) => resolve({ stdout, stderr }),
      );
      child.stdin?.end(input === undefined ? '' : JSON.stringify(input));
    });

export interface Answers {
  /** Lines about accepted objects, in order. */
  readonly passed: readonly string[];
  /** Messages about the others, in order. */
  readonly refused: readonly string[];
}

/** One dry-run call for all of them. */
export const sendAll = async (
  kubectl: AdmissionServer['kubectl'],
  verb: 'create' | 'replace' | 'delete',
  items: readonly object[],
  flags: readonly string[] = [],
): Promise<Answers> => {
  if (items.length === 0) return { passed: [], refused: [] };
  const unchecked = verb === 'delete' ? [] : ['--validate=false'];
  const args = [verb, '--dry-run=server', ...unchecked, ...flags, '-f', '-'];
  const { stdout, stderr } = await kubectl(args, { apiVersion: 'v1', kind: 'List', items });
  return {
    passed: stdout.split('\n').filter((line) => line.endsWith('(server dry run)')),
    refused: stderr
      .replaceAll(/^Warning: .*\n?/gm, '')
      .split(/\n(?=Error from server|The |error: )/)
      .filter((text) => text.trim() !== ''),
  };
};
