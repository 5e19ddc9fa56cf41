// A Knative Broker in this process: receives events, routes them by Triggers, delivers with their DeliverySpec. Started by the local cluster.
import type { CloudEvent } from '#events/event.ts';
import { type ChaosSwitches, calm } from '#local-cluster/broker/chaos.ts';
import type { Envelope, Fate } from '#local-cluster/broker/dispatch.ts';
import type { BrokerManifests } from '#local-cluster/broker/manifest.ts';
import { type Counts, type RouteOptions, createRoute, noCounts } from '#local-cluster/broker/route.ts';

const maxTtl = 255;

export interface BrokerOptions extends Omit<RouteOptions, 'broker' | 'now' | 'chaos'> {
  readonly manifests: BrokerManifests;
  /**
   * When the ingress answers: `before` delivery, or `after` it, including retries, so that a slow function blocks the source. Default: the
   * Broker's annotation `messaging.knative.dev/async-handler`.
   */
  readonly acknowledge?: 'before' | 'after';
  /** Limit of deliveries in progress; beyond it the ingress makes senders wait. */
  readonly maxInFlight?: number;
  readonly chaos?: ChaosSwitches;
  readonly now?: () => Date;
}

export interface Broker {
  readonly namespace: string;
  readonly name: string;
  /** Receives one event; returns the status of the ingress. */
  publish(event: CloudEvent, headers?: Readonly<Record<string, string>>): Promise<number>;
  /** Number of deliveries by result, over all Triggers. */
  readonly counts: Counts;
  /** The same for each Trigger. */
  readonly countsByTrigger: ReadonlyMap<string, Counts>;
  readonly chaos: ChaosSwitches;
  /** Resolves when no delivery is in progress. */
  idle(): Promise<void>;
  /** Loses all deliveries in progress, like the in-memory channel when its pod ends. */
  restart(): void;
  /** The same, permanently. */
  stop(): Promise<void>;
}

export const createBroker = (options: BrokerOptions): Broker => {
  const { manifests, maxInFlight = 1_000, now = () => new Date(), chaos = calm() } = options;
  const { name, namespace, annotations } = manifests.broker.metadata;
  const acknowledge =
    options.acknowledge ?? (annotations['messaging.knative.dev/async-handler'] === 'true' ? 'before' : 'after');
  const counts = noCounts();
  const inFlight = new Set<Promise<Fate>>();
  let life = new AbortController();
  let isStopped = false;

  const route = (envelope: Envelope): readonly Promise<Fate>[] =>
    routes
      .filter(({ wants }) => wants(envelope.event))
      .map((wanted) => {
        const fate = wanted.deliver(envelope, life.signal).then((reached) => {
          counts[reached] += 1;
          wanted.counts[reached] += 1;
          inFlight.delete(fate);
          return reached;
        });
        inFlight.add(fate);
        return fate;
      });
  const accept = async (envelope: Envelope): Promise<number> => {
    if (isStopped) return 503;
    if (envelope.ttl <= 0) return 400;
    const arrived = { ...envelope.event.extensions, knativearrivaltime: now().toISOString() };
    const fates = route({ ...envelope, event: { ...envelope.event, extensions: arrived } });
    if (acknowledge === 'before') return 202;
    return (await Promise.all(fates)).includes('lost') ? 500 : 202;
  };
  const publish: Broker['publish'] = async (event, headers = {}) => {
    while (inFlight.size >= maxInFlight) await Promise.race(inFlight);
    return accept(toEnvelope(event, headers));
  };
  // A reply is accepted by a full broker: its own delivery is one of those in progress.
  const reply = (envelope: Envelope) => accept({ ...envelope, ttl: envelope.ttl - 1 });
  const routeOptions = { ...options, broker: manifests.broker, now, chaos };
  const routes = manifests.triggers.flatMap((trigger) => createRoute(trigger, routeOptions, reply) ?? []);

  const idle = async (): Promise<void> => {
    while (inFlight.size > 0) await Promise.allSettled(inFlight);
  };
  const restart = (): void => {
    life.abort(new Error('the broker was restarted'));
    life = new AbortController();
  };
  const stop = async (): Promise<void> => {
    isStopped = true;
    restart();
    await idle();
  };
  const countsByTrigger = new Map(routes.map((known) => [known.name, known.counts]));
  return { namespace, name, publish, counts, countsByTrigger, chaos, idle, restart, stop };
};

/** The ingress decrements the time to live of the sender, or starts with 255. */
const toEnvelope = (event: CloudEvent, headers: Readonly<Record<string, string>>): Envelope => {
  const { knativebrokerttl, ...extensions } = event.extensions;
  const given = knativebrokerttl === undefined ? Number.NaN : Number(knativebrokerttl);
  return { event: { ...event, extensions }, headers, ttl: Number.isInteger(given) ? given - 1 : maxTtl };
};
