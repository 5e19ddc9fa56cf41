// A Knative Broker in this process: takes events in, routes them by Triggers, delivers with their DeliverySpec. Started by the local cluster.
import { type Sleep, deliver, sleep as realSleep } from '#events/delivery.ts';
import { encodeEvent } from '#events/encode.ts';
import type { CloudEvent } from '#events/event.ts';
import { type ChaosSwitches, calm, createChaos } from '#infra/local/broker/chaos.ts';
import { type DispatchOptions, type Envelope, type Fate, type Target, dispatch } from '#infra/local/broker/dispatch.ts';
import { createFilter } from '#infra/local/broker/filter.ts';
import { createLimiter } from '#infra/local/broker/limiter.ts';
import type { BrokerManifests, DeliverySpec, Destination, Trigger } from '#infra/local/broker/manifest.ts';
import { type BrokerClass, createPolicy, effectiveDelivery } from '#infra/local/broker/policy.ts';
import type { Logger } from '#shared/runtime/log.ts';

const maxTtl = 255;

export interface BrokerOptions {
  readonly manifests: BrokerManifests;
  /** Finds a subscriber or dead letter sink; undefined leaves the Trigger without effect, as one that is not ready. */
  readonly resolve: (destination: Destination, namespace: string) => Target | undefined;
  /** Takes dead letters in place of the sink in the manifest. */
  readonly deadLetters?: ((event: CloudEvent) => Promise<void>) | undefined;
  readonly brokerClass?: BrokerClass;
  /** Deliveries of one Trigger at a time. */
  readonly concurrency?: number;
  /** `object`: attempts about one subject do not overlap and start in order. Knative's channel has no order: `none`. */
  readonly ordering?: 'object' | 'none';
  /**
   * When the ingress answers: `before` delivery, or `after` it, retries included, so that a slow function holds up the source. As the
   * Broker's annotation `messaging.knative.dev/async-handler` says when left out.
   */
  readonly acknowledge?: 'before' | 'after';
  /** Deliveries in progress above which the ingress makes senders wait. */
  readonly maxInFlight?: number;
  readonly chaos?: ChaosSwitches;
  readonly random?: () => number;
  readonly log: Logger;
  readonly now?: () => Date;
  readonly sleep?: Sleep;
}

export interface Broker {
  readonly namespace: string;
  readonly name: string;
  /** Takes one event in; the status that the ingress answers. */
  publish(event: CloudEvent, headers?: Readonly<Record<string, string>>): Promise<number>;
  /** How many deliveries ended how, over all Triggers. */
  readonly counts: Readonly<Record<Fate, number>>;
  readonly chaos: ChaosSwitches;
  /** Resolves when nothing is being delivered. */
  idle(): Promise<void>;
  /** Loses whatever is being delivered, as the in-memory channel does when its pod ends. */
  restart(): void;
  /** The same, for good. */
  stop(): Promise<void>;
}

interface Route {
  readonly wants: (event: CloudEvent) => boolean;
  readonly deliver: (envelope: Envelope, signal: AbortSignal) => Promise<Fate>;
}

export const createBroker = (options: BrokerOptions): Broker => {
  const { manifests, maxInFlight = 1_000, now = () => new Date(), chaos = calm() } = options;
  const { name, namespace, annotations } = manifests.broker.metadata;
  const acknowledge =
    options.acknowledge ?? (annotations['messaging.knative.dev/async-handler'] === 'true' ? 'before' : 'after');
  const counts = { delivered: 0, deadLettered: 0, lost: 0, abandoned: 0 };
  const inFlight = new Set<Promise<Fate>>();
  let life = new AbortController();
  let isStopped = false;

  const route = (envelope: Envelope): readonly Promise<Fate>[] =>
    routes
      .filter(({ wants }) => wants(envelope.event))
      .map((wanted) => {
        const fate = wanted.deliver(envelope, life.signal).then((reached) => {
          counts[reached] += 1;
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
  // A reply is not held up by a full broker: its own delivery is one of those in progress.
  const reply = (envelope: Envelope) => accept({ ...envelope, ttl: envelope.ttl - 1 });
  const routes = manifests.triggers.flatMap((trigger) => createRoute(trigger, { ...options, now, chaos }, reply) ?? []);

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
  return { namespace, name, publish, counts, chaos, idle, restart, stop };
};

/** The ingress counts down what the sender says, or begins with 255. */
const toEnvelope = (event: CloudEvent, headers: Readonly<Record<string, string>>): Envelope => {
  const { knativebrokerttl, ...extensions } = event.extensions;
  const given = knativebrokerttl === undefined ? Number.NaN : Number(knativebrokerttl);
  return { event: { ...event, extensions }, headers, ttl: Number.isInteger(given) ? given - 1 : maxTtl };
};

const createRoute = (
  trigger: Trigger,
  options: BrokerOptions & { readonly now: () => Date; readonly chaos: ChaosSwitches },
  reply: DispatchOptions['reply'],
): Route | undefined => {
  const { log, brokerClass = 'MTChannelBasedBroker', ordering = 'object', sleep = realSleep } = options;
  const { metadata, spec } = trigger;
  const subscriber = options.resolve(spec.subscriber, metadata.namespace);
  if (subscriber === undefined) {
    log.warn('Trigger has no subscriber', { trigger: metadata.name, subscriber: spec.subscriber });
    return undefined;
  }
  const delivery = effectiveDelivery(spec.delivery, options.manifests.broker.spec.delivery);
  const policy = createPolicy(delivery, brokerClass, options.now);
  const dispatchOptions: DispatchOptions = {
    trigger,
    delivery,
    brokerClass,
    policy,
    subscriber,
    reply,
    log,
    sleep,
    deadLetter: createDeadLetter(delivery, trigger, options),
    replyUrl: `http://broker-ingress/${metadata.namespace}/${spec.broker}`,
    limiter: createLimiter(options.concurrency ?? 10),
    keyOf: ({ subject }) => (ordering === 'object' ? subject : undefined),
  };
  const disturb = createChaos(options.chaos, options.random ?? Math.random, sleep);
  return {
    wants: createFilter(spec),
    deliver: async (envelope, signal) => {
      // An event that chaos drops ends as if the channel had lost it.
      let fate: Fate = 'abandoned';
      await disturb(async () => {
        fate = await dispatch(envelope, dispatchOptions, signal).catch((error: unknown): Fate => {
          log.error('event lost', { trigger: metadata.name, eventId: envelope.event.id, error });
          return 'lost';
        });
      }, signal);
      return fate;
    },
  };
};

const createDeadLetter = (
  delivery: DeliverySpec,
  trigger: Trigger,
  options: BrokerOptions & { readonly now: () => Date },
): DispatchOptions['deadLetter'] => {
  const { deadLetters, brokerClass = 'MTChannelBasedBroker', sleep = realSleep, log } = options;
  if (delivery.deadLetterSink === undefined) return undefined;
  if (deadLetters !== undefined) {
    return async (event) => {
      await deadLetters(event);
      return true;
    };
  }
  const { namespace, name } = trigger.metadata;
  const sink = options.resolve(delivery.deadLetterSink, namespace);
  if (sink === undefined) {
    log.warn('Trigger has no dead letter sink', { trigger: name, sink: delivery.deadLetterSink });
    return undefined;
  }
  const policy = createPolicy(delivery, brokerClass, options.now);
  return async (event, signal) => {
    const { headers, body } = encodeEvent(event);
    const message = { headers: { ...headers, 'kn-namespace': namespace }, body };
    const post = (limit: AbortSignal) => sink.post(sink.url, message, limit);
    return (await deliver(post, { policy, timeoutMs: delivery.timeout, sleep, signal })).isDelivered;
  };
};
