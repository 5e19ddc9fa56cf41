// Bullion on the node, in one of three shapes: the base with Knative and the overlay `single`, each as it is, or the base but for Knative's kinds. There each Knative
// Service is a Deployment of one pod with the same pod specification, and Broker, Triggers and sources run in this process, as on a laptop. Called by main.ts.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startEventing } from '#infra/local/eventing.ts';
import { readAccess, readCrds, readEventing, repositoryDir, systemNamespace } from '#infra/local/manifests.ts';
import { readManifests } from '#local-cluster/broker/manifest.ts';
import { freePorts } from '#local-cluster/free-ports.ts';
import type { AnyObject } from '#local-cluster/csi-driver/programs.ts';
import { applyObjects, installCrds } from '#local-cluster/install.ts';
import { openLogFile } from '#local-cluster/log-file.ts';
import { network } from '#local-cluster/node/layout.ts';
import type { LocalNode } from '#local-cluster/node/start.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { storageProfileKind } from '#shared/api/cdi/storage-profile.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { until } from '#test/support/until.ts';

const run = promisify(execFile);

interface Probe {
  readonly httpGet: object;
}

interface Container {
  readonly env?: readonly object[];
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
}

interface PodTemplate {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: { readonly containers: readonly Container[] };
}

interface KnativeService extends KubeObject {
  readonly spec: { readonly template: PodTemplate };
}

const port = 8080;

/** What a Knative Service may say and a pod may not. */
const ofKnativeOnly = ['containerConcurrency', 'timeoutSeconds', 'responseStartTimeoutSeconds'];

const atPort = ({ httpGet, ...rest }: Probe): Probe => ({ ...rest, httpGet: { ...httpGet, port } });

/** Knative adds the name of the container, the port of its probes, and the address of the Broker. */
const toPlain = ({ metadata: { name }, spec: { template } }: KnativeService, sink: string): readonly AnyObject[] => {
  const { labels } = template.metadata;
  const more = [
    { name: 'K_SINK', value: sink },
    { name: 'PORT', value: String(port) },
  ];
  const containers = template.spec.containers.map((container) => ({
    ...container,
    name,
    env: [...(container.env ?? []), ...more],
    readinessProbe: atPort(container.readinessProbe),
    livenessProbe: atPort(container.livenessProbe),
  }));
  const kept = Object.entries(template.spec).filter(([key]) => !ofKnativeOnly.includes(key));
  const metadata = { name, namespace: systemNamespace, labels };
  const pod = { metadata: { labels }, spec: { ...Object.fromEntries(kept), containers } };
  const deployment = { replicas: 1, selector: { matchLabels: labels }, template: pod };
  const service = { selector: labels, ports: [{ port: 80, targetPort: port }] };
  return [
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: deployment },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: service },
  ];
};

/** `single`: one pod; `apart`: each function in a pod of its own, with its own account; `knative`: as Services that scale to zero. */
export const shapes = ['single', 'apart', 'knative'] as const;
export type Shape = (typeof shapes)[number];

const installs: Readonly<Record<Shape, (node: LocalNode) => Promise<() => Promise<void>>>> = {
  single: (node) => installSingle(node),
  apart: (node) => installApart(node),
  knative: (node) => installOnKnative(node),
};

/** Ready means: every pod of ours is, admission included. Returns how it is stopped. */
export const installBullion = async (node: LocalNode, shape: Shape): Promise<() => Promise<void>> => {
  const stop = await installs[shape](node);
  await describeStorage(node);
  return stop;
};

/** As the administrator of a cluster does for a storage that nothing is known of; each class has a profile soon. */
const describeStorage = async ({ kube }: LocalNode): Promise<void> => {
  const { type } = storageProfileKind;
  const spec = { claimPropertySets: [{ accessModes: ['ReadWriteOnce'], volumeMode: 'Block' }] };
  for (const name of profiles) {
    await until(kube, type, { name }, (profile) => profile !== undefined, 120);
    await kube.mergePatch(type, { name }, { spec });
  }
};

const profiles = ['local', 'local-wffc'] as const;

const installSingle = async ({ paths }: LocalNode): Promise<() => Promise<void>> => {
  const kubectl = (...args: readonly string[]) => run('kubectl', ['--kubeconfig', paths.kubeconfig, ...args]);
  await kubectl('apply', '--server-side', '-k', join(repositoryDir, 'infra/overlays/single'));
  await kubectl('rollout', 'status', '-n', systemNamespace, 'deployment/bullion', '--timeout=240s');
  return async () => undefined;
};

/** On a node with Knative. */
const installOnKnative = async ({ paths }: LocalNode): Promise<() => Promise<void>> => {
  const kubectl = (...args: readonly string[]) => run('kubectl', ['--kubeconfig', paths.kubeconfig, ...args]);
  await kubectl('apply', '-k', join(repositoryDir, 'infra'));
  const kinds = ['broker', 'trigger', 'ksvc', 'apiserversource', 'pingsource'];
  const isReady = ['wait', '-n', systemNamespace, '--for=condition=Ready', '--timeout=300s', '--all'];
  for (const kind of kinds) await kubectl(...isReady, kind);
  await kubectl('rollout', 'status', '-n', systemNamespace, 'deployment/admission', '--timeout=240s');
  return async () => undefined;
};

const installApart = async ({ kube, paths }: LocalNode): Promise<() => Promise<void>> => {
  const manifests = await readEventing();
  const [eventsPort = 0] = await freePorts(1);
  const sink = `http://${network.node}:${eventsPort}/${systemNamespace}/bullion`;
  await installCrds(kube, await readCrds());
  await applyObjects(kube, await readAccess());
  const isService = (object: KubeObject): object is KnativeService => object.apiVersion === 'serving.knative.dev/v1';
  const services = manifests.filter(isService);
  await applyObjects(kube, [
    ...manifests.filter(({ kind }) => kind === 'ConfigMap'),
    ...services.flatMap((service) => toPlain(service, sink)),
  ]);
  // `certificate.yaml` is for those who have cert-manager.
  const webhooks = (await readManifests(join(repositoryDir, 'infra/webhooks'))) as readonly KubeObject[];
  await applyObjects(
    kube,
    webhooks.filter(({ apiVersion }) => !apiVersion.startsWith('cert-manager.io')),
  );
  const addressOf = async (name: string): Promise<string> => {
    const path = `/api/v1/namespaces/${systemNamespace}/services/${name}`;
    const { spec } = await kube.raw<{ readonly spec: { readonly clusterIP: string } }>({ method: 'GET', path });
    return `http://${spec.clusterIP}`;
  };
  const subscribers = new Map<string, string>();
  for (const { metadata } of services) subscribers.set(metadata.name, await addressOf(metadata.name));
  const { write } = await openLogFile(join(paths.logs, 'eventing.log'));
  const eventing = await startEventing({
    kube,
    manifests,
    subscribers,
    port: eventsPort,
    host: network.node,
    log: createLogger({ write }),
    kubeconfigs: { admin: paths.kubeconfig, sources: paths.kubeconfig },
  });
  const waiting = ['--kubeconfig', paths.kubeconfig, '-n', systemNamespace, 'wait', '--for=condition=Available'];
  const untilAvailable = (...which: readonly string[]) => run('kubectl', [...waiting, '--timeout=300s', ...which]);
  // Its first tick makes the certificate that admission waits for.
  await untilAvailable('deployment/cron-tick');
  eventing.tick();
  await untilAvailable('deployment', '--all');
  return eventing.stop;
};
