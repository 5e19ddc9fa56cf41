// Knative Eventing in this process: the broker with its Triggers, the API source and the ping source of `infra/knative`. Called by cluster.ts.
import { randomUUID } from 'node:crypto';
import { parseApiServerSource, resolveSource, startSource } from '#events/forward/source.ts';
import { type Post, createHandlerPost } from '#events/post.ts';
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
import { tolerate } from '#shared/clients/kube/tolerant.ts';
import { isNotFound } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';
import type { Hono } from 'hono';

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

/** The broker in this process: functions and senders reach it without a socket. */
export interface Bus {
  readonly broker: Broker;
  /** For senders outside of this process. */
  readonly ingress: Hono;
  readonly post: Post;
}

export const createBus = ({
  manifests,
  subscribers,
  log,
}: Pick<EventingOptions, 'manifests' | 'subscribers' | 'log'>): Bus => {
  const broker = createBroker({
    manifests: parseBrokerManifests(manifests),
    resolve: createResolver(subscribers),
    log: log.with({ part: 'broker' }),
  });
  const ingress = createIngress(broker);
  return { broker, ingress, post: createHandlerPost(async (request) => ingress.fetch(request)) };
};

export interface SendersOptions extends Pick<EventingOptions, 'kube' | 'manifests' | 'log' | 'tickSeconds'> {
  /** URL of the broker, as `post` reaches it. */
  readonly sink: string;
  readonly post: Post;
  /** Whether objects that exist at the start cause events. Default: they do not, as in Knative. */
  readonly replay?: 'none' | 'add' | undefined;
  /** Milliseconds between two checks for a kind that is not served. */
  readonly lookAgainMs?: number | undefined;
}

export interface Senders extends Pick<Eventing, 'tick' | 'stop'> {
  /** Resolves when every watch of a kind that the cluster has is about to start. */
  readonly ready: () => Promise<void>;
}

/** The API server sources and the ping sources of the manifests. */
export const startSenders = (options: SendersOptions): Senders => {
  const { kube, manifests, sink, post, replay, lookAgainMs, log } = options;
  const sources = ofKind(manifests, 'ApiServerSource').map((manifest) => ({
    manifest,
    ...startSource({ client: kube, manifest, sink, post, replay, lookAgainMs, log: log.with({ part: 'forwarder' }) }),
  }));
  const send = createSender({ sink, post });
  const pings = startPings({ ...options, send, log: log.with({ part: 'ping' }) });
  return {
    ready: async () => {
      await Promise.all(sources.map(async ({ manifest, ready }) => (await isAwaited(kube, manifest)) && ready));
    },
    tick: pings.tick,
    stop: async () => {
      await Promise.all([pings.stop(), ...sources.map((source) => source.stop())]);
    },
  };
};

/** Resolves when the server listens and every watch has started, so that no later change is missed. */
export const startEventing: StartEventing = async (options) => {
  const { manifests, log } = options;
  const { broker, ingress, post } = createBus(options);
  const { port, host = '127.0.0.1' } = options;
  const server = await startServer({ app: ingress, port, host, log, drainMs: 1_000 });
  const senders = startSenders({ ...options, post, sink: brokerUrl(manifests, server.port) });
  await senders.ready();
  return {
    broker,
    tick: senders.tick,
    stop: async () => {
      await senders.stop();
      await broker.stop();
      await server.close();
    },
  };
};

/** Kinds that a cluster may not have are watched by a separate source, which starts when the kind is added. */
const isAwaited = async (kube: KubeClient, manifest: KubeObject): Promise<boolean> => {
  if (manifest.metadata.labels?.[labels.optional] === undefined) return true;
  return (await tolerate(resolveSource(kube, parseApiServerSource(manifest)), isNotFound)) !== undefined;
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
