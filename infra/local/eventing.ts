// Knative Eventing in this process: the broker with its Triggers, the API source and the ping source of `infra/knative`. Called by cluster.ts.
import { randomUUID } from 'node:crypto';
import { startSource } from '#events/forward/run.ts';
import { parseApiServerSource, resolveSource } from '#events/forward/source.ts';
import { createHandlerPost } from '#events/post.ts';
import { createSender } from '#events/send.ts';
import type { Send } from '#events/sender.ts';
import { type Broker, createBroker } from '#local-cluster/broker/broker.ts';
import { createIngress } from '#local-cluster/broker/ingress.ts';
import { parseBrokerManifests } from '#local-cluster/broker/manifest.ts';
import { createResolver, type Subscriber } from '#local-cluster/broker/resolver.ts';
import { buildPing, parsePingSource, startPing } from '#local-cluster/ping/ping.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isNotFound } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';

export interface EventingOptions {
  readonly kube: KubeClient;
  readonly manifests: readonly KubeObject[];
  readonly subscribers: ReadonlyMap<string, Subscriber>;
  readonly port: number;
  /** Where the Broker listens. Default: loopback. */
  readonly host?: string;
  /** Seconds between ticks, instead of the schedule in the manifest. */
  readonly tickSeconds?: number | undefined;
  readonly log: Logger;
  /** Of the administrator, and of the account of the sources: for senders that are separate processes. */
  readonly kubeconfigs: { readonly admin: string; readonly sources: string };
}

export interface Eventing {
  readonly broker: Broker;
  /** Sends one tick now. */
  readonly tick: () => void;
  readonly stop: () => Promise<void>;
}

/** Delivers events from the API to the functions. */
export type StartEventing = (options: EventingOptions) => Promise<Eventing>;

/** URL of a broker of these manifests that listens on `port`. */
export const brokerUrl = (manifests: readonly KubeObject[], port: number): string => {
  const { name, namespace } = parseBrokerManifests(manifests).broker.metadata;
  return `http://127.0.0.1:${port}/${namespace}/${name}`;
};

/** Resolves when the server listens and every watch has started, so that no later change is missed. */
export const startEventing: StartEventing = async (options) => {
  const { kube, manifests, log } = options;
  const broker = createBroker({
    manifests: parseBrokerManifests(manifests),
    resolve: createResolver(options.subscribers),
    log: log.with({ part: 'broker' }),
  });
  const ingress = createIngress(broker);
  const server = await startServer({
    app: ingress,
    port: options.port,
    host: options.host ?? '127.0.0.1',
    log,
    drainMs: 1_000,
  });
  const sink = brokerUrl(manifests, server.port);
  const post = createHandlerPost(async (request) => ingress.fetch(request));
  const sources = ofKind(manifests, 'ApiServerSource').map((manifest) => ({
    manifest,
    ...startSource({ client: kube, manifest, sink, post, log: log.with({ part: 'forwarder' }) }),
  }));
  await Promise.all(sources.map(async ({ manifest, ready }) => (await isAwaited(kube, manifest)) && ready));
  const send = createSender({ sink, post });
  const pings = startPings({ ...options, send, log: log.with({ part: 'ping' }) });
  return {
    broker,
    tick: pings.tick,
    stop: async () => {
      await Promise.all([pings.stop(), ...sources.map((source) => source.stop())]);
      await broker.stop();
      await server.close();
    },
  };
};

/** Kinds that a cluster may not have are watched by a separate source, which starts when the kind is added. */
const isAwaited = async (kube: KubeClient, manifest: KubeObject): Promise<boolean> => {
  if (manifest.metadata.labels?.[labels.optional] === undefined) return true;
  try {
    await resolveSource(kube, parseApiServerSource(manifest));
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
};

interface PingsOptions {
  readonly manifests: readonly KubeObject[];
  readonly send: Send;
  readonly log: Logger;
}

const ofKind = (manifests: readonly KubeObject[], kind: string): readonly KubeObject[] =>
  manifests.filter((manifest) => manifest.kind === kind);

const startPings = ({
  manifests,
  send,
  log,
  tickSeconds,
}: PingsOptions & { readonly tickSeconds?: number | undefined }): Pick<Eventing, 'tick' | 'stop'> => {
  const sources = ofKind(manifests, 'PingSource').map(parsePingSource);
  const pings = sources.map((source) => startPing({ source, send, log, tickSeconds }));
  return {
    tick: () => {
      for (const source of sources) void send(buildPing(source, randomUUID(), new Date()));
    },
    stop: async () => {
      await Promise.all(pings.map((ping) => ping.stop()));
    },
  };
};
