// Knative Eventing in this process: the broker with its Triggers, the API source and the ping source of `infra/knative`. Called by cluster.ts.
import { randomUUID } from 'node:crypto';
import { type Forwarder, startForwarder } from '#events/forward/forwarder.ts';
import { parseApiServerSource, resolveSource } from '#events/forward/source.ts';
import { createHandlerPost } from '#events/post.ts';
import { type Send, createSender } from '#events/send.ts';
import { type Broker, createBroker } from '#infra/local/broker/broker.ts';
import { createIngress } from '#infra/local/broker/ingress.ts';
import { parseBrokerManifests } from '#infra/local/broker/manifest.ts';
import { createResolver, type Subscriber } from '#infra/local/broker/resolver.ts';
import { buildPing, parsePingSource, startPing } from '#infra/local/ping/ping.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';

export interface EventingOptions {
  readonly kube: KubeClient;
  readonly manifests: readonly KubeObject[];
  readonly subscribers: ReadonlyMap<string, Subscriber>;
  readonly port: number;
  /** Seconds between ticks, in place of the schedule in the manifest. */
  readonly tickSeconds?: number | undefined;
  readonly log: Logger;
}

export interface Eventing {
  readonly broker: Broker;
  /** Sends one tick now. */
  readonly tick: () => void;
  readonly stop: () => Promise<void>;
}

/** Where a broker of these manifests takes events when it listens on `port`. */
export const brokerUrl = (manifests: readonly KubeObject[], port: number): string => {
  const { name, namespace } = parseBrokerManifests(manifests).broker.metadata;
  return `http://127.0.0.1:${port}/${namespace}/${name}`;
};

/** Resolves when the door is open and every watch has begun, so that no later change is missed. */
export const startEventing = async (options: EventingOptions): Promise<Eventing> => {
  const { kube, manifests, log } = options;
  const broker = createBroker({
    manifests: parseBrokerManifests(manifests),
    resolve: createResolver(options.subscribers),
    log: log.with({ part: 'broker' }),
  });
  const ingress = createIngress(broker);
  const door = await startServer({ app: ingress, port: options.port, log, drainMs: 1_000 });
  const send = createSender({
    sink: brokerUrl(manifests, door.port),
    post: createHandlerPost(async (request) => ingress.fetch(request)),
  });
  const forwarders = await startForwarders(kube, { manifests, send, log: log.with({ part: 'forwarder' }) });
  const pings = startPings({ ...options, send, log: log.with({ part: 'ping' }) });
  return {
    broker,
    tick: pings.tick,
    stop: async () => {
      await Promise.all([pings.stop(), ...forwarders.map((forwarder) => forwarder.stop())]);
      await broker.stop();
      await door.close();
    },
  };
};

interface SourceOptions {
  readonly manifests: readonly KubeObject[];
  readonly send: Send;
  readonly log: Logger;
}

const ofKind = (manifests: readonly KubeObject[], kind: string): readonly KubeObject[] =>
  manifests.filter((manifest) => manifest.kind === kind);

const startForwarders = async (
  kube: KubeClient,
  { manifests, send, log }: SourceOptions,
): Promise<readonly Forwarder[]> => {
  const forwarders: Forwarder[] = [];
  for (const manifest of ofKind(manifests, 'ApiServerSource')) {
    const source = await resolveSource(kube, parseApiServerSource(manifest));
    forwarders.push(startForwarder({ ...source, client: kube, send, log }));
  }
  await Promise.all(forwarders.map(({ ready }) => ready));
  return forwarders;
};

const startPings = ({
  manifests,
  send,
  log,
  tickSeconds,
}: SourceOptions & { readonly tickSeconds?: number | undefined }): Pick<Eventing, 'tick' | 'stop'> => {
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
