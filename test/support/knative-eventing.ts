// Knative's own processes between the API and the functions: its adapter watches, its ping source ticks, its broker-filter filters and
// delivers. The channel between them is replaced by our broker without a filter. Each Trigger has the account that Knative creates for it, and
// functions accept only events with its token, as with the component `oidc`.
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { parseApiServerSource, resolveSource } from '#events/forward/source.ts';
import { audienceOf, subjectsOf } from '#infra/generate/oidc.ts';
import type { KnativeAssets } from '#local-cluster/envtest/knative/assets.ts';
import { createBroker } from '#local-cluster/broker/broker.ts';
import { createIngress } from '#local-cluster/broker/ingress.ts';
import { parseBrokerManifests } from '#local-cluster/broker/manifest.ts';
import { createResolver } from '#local-cluster/broker/resolver.ts';
import { type Eventing, type EventingOptions, brokerUrl } from '#infra/local/eventing.ts';
import { freePorts } from '#local-cluster/free-ports.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { keyOf } from '#shared/api/object.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { discoverIssuer, withCaller } from '#shared/runtime/caller.ts';
import { isNotFound } from '#shared/runtime/errors.ts';
import { type RunningServer, startServer } from '#shared/runtime/serve.ts';
import { pingSources, prepareKnative, triggers } from '#test/support/knative.ts';

/** Deliveries of broker-filter to a function. */
export interface Delivered {
  readonly to: string;
  readonly type: string;
  readonly kind: string | null;
  readonly status: number;
  /** URL and allowed callers of the function. */
  readonly url: string;
}

interface TriggerManifest extends KubeObject {
  readonly spec: {
    readonly subscriber: { readonly ref: { readonly name: string }; readonly uri?: string };
    readonly filter?: unknown;
    readonly filters?: unknown;
  };
}

const isOfKind =
  <T extends KubeObject>(kind: string) =>
  (object: KubeObject): object is T =>
    object.kind === kind;

/** It reads its ConfigMaps in the namespace of this variable. */
const pingEnvironment = { NAMESPACE: 'knative-eventing', POD_NAME: 'ping', K_NO_SHUTDOWN_AFTER: '59' };

/** `delivered` is called for every delivery. With a leading field for seconds: Knative's cron supports six fields. */
export const createKnativeEventing =
  (assets: KnativeAssets, schedule: string, delivered: (one: Delivered) => void) =>
  async (options: EventingOptions): Promise<Eventing> => {
    const { manifests, subscribers, log, kubeconfigs } = options;
    const admin = createKubeClient(loadKubeConfig(kubeconfigs.admin));
    const children: ChildProcess[] = [];
    const run = (program: string, kubeconfig: string, env: Record<string, string>, args: string[] = []): void => {
      const child = spawn(program, args, {
        env: { KUBECONFIG: kubeconfig, SYSTEM_NAMESPACE: 'knative-eventing', NAMESPACE: 'bullion-system', ...env },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      child.stderr?.on('data', (chunk: Buffer) => log.warn('knative', { program, text: chunk.toString('utf8') }));
      children.push(child);
    };
    await prepareKnative(admin);
    const servers = await serveFunctions(options, delivered);
    const urlOf = (name: string): string => servers.get(name)!.url;

    const [filterPort = 0, tlsPort = 0] = await freePorts(2);
    const filterUrl = `http://127.0.0.1:${filterPort}`;
    const routed: KubeObject[] = [];
    for (const trigger of manifests.filter(isOfKind<TriggerManifest>('Trigger'))) {
      const { ref, uri = '/' } = trigger.spec.subscriber;
      const { metadata } = await admin.create(triggers, trigger as KubeObject);
      const subscriberUri = new URL(uri, urlOf(ref.name)).href;
      const serviceAccountName = accountOf(metadata.name);
      await admin.create(serviceAccounts, {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: serviceAccountName, namespace: metadata.namespace },
      } as KubeObject);
      const status = { subscriberUri, subscriberAudience: audienceOf(ref.name), auth: { serviceAccountName } };
      await admin.mergePatch(triggers, keyOf(trigger), { status }, { subresource: 'status' });
      const path = `/triggers/${metadata.namespace ?? ''}/${metadata.name}/${metadata.uid ?? ''}`;
      const { filter: _filter, filters: _filters, ...spec } = trigger.spec;
      routed.push({ ...trigger, spec: { ...spec, subscriber: { uri: `${filterUrl}${path}` } } } as KubeObject);
    }
    run(assets.filter, kubeconfigs.admin, {
      POD_NAME: 'filter',
      CONTAINER_NAME: 'filter',
      FILTER_PORT: String(filterPort),
      FILTER_PORT_HTTPS: String(tlsPort),
    });

    const resolve = createResolver(subscribers);
    const broker = createBroker({
      manifests: parseBrokerManifests([...manifests.filter(({ kind }) => kind === 'Broker'), ...routed]),
      log,
      resolve: (destination, namespace) => {
        const target = resolve(destination, namespace);
        if (target === undefined || !target.url.startsWith(filterUrl)) return target;
        // The attribute that broker-ingress adds.
        return {
          ...target,
          post: (url, { headers, body }, signal) =>
            target.post(url, { headers: { ...headers, 'ce-knativebrokerttl': '255' }, body }, signal),
        };
      },
    });
    const server = await startServer({ app: createIngress(broker), port: options.port, log, drainMs: 1_000 });
    const sink = brokerUrl(manifests, server.port);

    run(assets.adapter, kubeconfigs.sources, {
      K_SINK: sink,
      NAME: 'sources',
      K_SOURCE_CONFIG: JSON.stringify({
        namespaces: [''],
        allNamespaces: true,
        mode: 'Resource',
        resources: await watchedBy(options),
      }),
    });
    const ping = manifests.find(isOfKind<KubeObject & { readonly spec: object }>('PingSource'))!;
    await admin.create(pingSources, { ...ping, spec: { ...ping.spec, schedule } } as KubeObject);
    const status = { sinkUri: sink, conditions: [{ type: 'Ready', status: 'True' }] };
    await admin.mergePatch(pingSources, keyOf(ping), { status }, { subresource: 'status' });
    run(assets.ping, kubeconfigs.admin, pingEnvironment, ['-disable-ha']);

    return {
      broker,
      tick: () => undefined,
      stop: async () => {
        for (const child of children) child.kill('SIGKILL');
        await broker.stop();
        await server.close();
        for (const server of servers.values()) await server.close();
        await wait(0);
      },
    };
  };

const serviceAccounts: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};

/** Knative's name of the account of a Trigger. */
const accountOf = (trigger: string): string => `${trigger}-oidc-eventing.knative.dev-trigger`;

const serveFunctions = async (
  { subscribers, kube, log }: EventingOptions,
  delivered: (one: Delivered) => void,
): Promise<ReadonlyMap<string, RunningServer>> => {
  const servers = new Map<string, RunningServer>();
  for (const [name, subscriber] of subscribers) {
    if (typeof subscriber === 'string') continue;
    const rules = { audience: audienceOf(name), subjects: subjectsOf(name) };
    const guarded = withCaller({ fetch: subscriber }, rules, { discover: () => discoverIssuer(kube), log });
    const fetch = async (request: Request): Promise<Response> => {
      const [type, kind] = [request.headers.get('ce-type') ?? '', request.headers.get('ce-kind')];
      const response = await guarded.fetch(request);
      delivered({ to: name, type, kind, status: response.status, url: request.url });
      return response;
    };
    servers.set(name, await startServer({ app: { fetch }, port: 0, log, drainMs: 1_000 }));
  }
  return servers;
};

interface Watched {
  readonly gvr: { readonly Group: string; readonly Version: string; readonly Resource: string };
  readonly selector?: string;
}

/** All sources in one adapter, if the cluster has their kinds: its health port is fixed, so that only one can run on a host. */
const watchedBy = async ({ kube, manifests }: EventingOptions): Promise<readonly Watched[]> => {
  const watched: Watched[] = [];
  for (const manifest of manifests.filter(({ kind }) => kind === 'ApiServerSource')) {
    try {
      for (const { type, labelSelector } of (await resolveSource(kube, parseApiServerSource(manifest))).resources) {
        const gvr = { Group: type.group, Version: type.version, Resource: type.plural };
        watched.push({ gvr, ...(labelSelector === undefined ? {} : { selector: labelSelector }) });
      }
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  return watched;
};
