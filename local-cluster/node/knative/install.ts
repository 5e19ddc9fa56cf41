// Knative Serving and Eventing on a node: their own programs in pods, from their own manifests. Called by test/cluster.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { applyObjects, installCrds } from '#local-cluster/install.ts';
import { startIngress } from '#local-cluster/node/knative/ingress.ts';
import { type Part, type Settings, readKnative } from '#local-cluster/node/knative/manifests.ts';
import { type KnativePrograms, loadKnative } from '#local-cluster/node/knative/programs.ts';
import { ingressClass } from '#local-cluster/node/knative/routes.ts';
import { network } from '#local-cluster/node/layout.ts';
import type { LocalNode } from '#local-cluster/node/start.ts';
import type { KubeObject } from '#shared/api/object.ts';

const run = promisify(execFile);

/** Images of the node are in no registry, so that none is asked for their digests. */
const settings: Settings = {
  'config-deployment': { 'registries-skipping-tag-resolving': 'index.docker.io,docker.io' },
  'config-network': { 'ingress-class': ingressClass },
};

interface InstallOptions {
  readonly programs: KnativePrograms;
  readonly report: (line: string) => void;
  /** See `startIngress`. */
  readonly aliases: Readonly<Record<string, string>>;
}

/** Ready means: Services, Brokers, Triggers and sources are accepted and served. Returns how what is no pod is stopped. */
export const installKnative = async (
  { kube, paths }: LocalNode,
  { programs, report, aliases }: InstallOptions,
): Promise<() => Promise<void>> => {
  report('loading the images of Knative');
  await loadKnative(paths.socket, programs);
  const parts: readonly Part[] = ['serving', 'eventing'];
  report('installing Knative');
  const rejecting: KubeObject[] = [];
  for (const part of parts) {
    const { namespaces, definitions, objects, webhooks } = await readKnative(part, programs, settings);
    await applyObjects(kube, namespaces);
    await installCrds(kube, definitions);
    await applyObjects(kube, [...objects, ...webhooks]);
    rejecting.push(...webhooks);
  }
  const failed = (message: string, fields: object): void => report(`${message}: ${JSON.stringify(fields)}`);
  const stop = await startIngress({ kube, report: failed, address: network.node, aliases });
  const untilSo = (...args: readonly string[]) =>
    run('kubectl', ['--kubeconfig', paths.kubeconfig, 'wait', '--timeout=300s', ...args]);
  for (const part of parts) await untilSo('-n', `knative-${part}`, '--for=condition=Available', 'deployment', '--all');
  // Their programs write it when they answer.
  const isAnswered = '--for=jsonpath={.webhooks[0].clientConfig.caBundle}';
  for (const { kind, metadata } of rejecting) await untilSo(isAnswered, `${kind.toLowerCase()}/${metadata.name}`);
  return stop;
};
