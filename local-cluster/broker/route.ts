// One Trigger of a broker: its filter, its policy, its subscriber and its dead letter sink. Created by broker.ts.
import { type Sleep, deliver, sleep as realSleep } from '#events/sender.ts';
import { encodeEvent } from '#events/message.ts';
import type { CloudEvent } from '#events/event.ts';
import { type ChaosSwitches, createChaos } from '#local-cluster/broker/chaos.ts';
import {
  type DispatchOptions,
  type Envelope,
  type Fate,
  type Target,
  dispatch,
  type BrokerClass,
  createPolicy,
  effectiveDelivery,
} from '#local-cluster/broker/dispatch.ts';
import { createLimiter } from '#local-cluster/broker/limiter.ts';
import type { BrokerManifests, DeliverySpec, Destination, Trigger, Filter } from '#local-cluster/broker/manifest.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface RouteOptions {
  readonly broker: BrokerManifests['broker'];
  /** Finds a subscriber or dead letter sink; undefined disables the Trigger, like one that is not ready. */
  readonly resolve: (destination: Destination, namespace: string) => Target | undefined;
  /** Receives dead letters instead of the sink in the manifest. */
  readonly deadLetters?: ((event: CloudEvent) => Promise<void>) | undefined;
  readonly brokerClass?: BrokerClass;
  /** Concurrent deliveries of one Trigger. */
  readonly concurrency?: number;
  /** `object`: attempts about one subject do not overlap and start in order. Knative's channel has no order: `none`. */
  readonly ordering?: 'object' | 'none';
  readonly chaos: ChaosSwitches;
  readonly random?: () => number;
  readonly log: Logger;
  readonly now: () => Date;
  readonly sleep?: Sleep;
}

export type Counts = Readonly<Record<Fate, number>>;

export const noCounts = (): Record<Fate, number> => ({ delivered: 0, deadLettered: 0, lost: 0, abandoned: 0 });

export interface Route {
  readonly name: string;
  readonly counts: Record<Fate, number>;
  readonly wants: (event: CloudEvent) => boolean;
  readonly deliver: (envelope: Envelope, signal: AbortSignal) => Promise<Fate>;
}

/** Undefined if the subscriber cannot be found. */
export const createRoute = (
  trigger: Trigger,
  options: RouteOptions,
  reply: DispatchOptions['reply'],
): Route | undefined => {
  const { log, brokerClass = 'MTChannelBasedBroker', ordering = 'object', sleep = realSleep } = options;
  const { metadata, spec } = trigger;
  const subscriber = options.resolve(spec.subscriber, metadata.namespace);
  if (subscriber === undefined) {
    log.warn('Trigger has no subscriber', { trigger: metadata.name, subscriber: spec.subscriber });
    return undefined;
  }
  const delivery = effectiveDelivery(spec.delivery, options.broker.spec.delivery);
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
    name: metadata.name,
    counts: noCounts(),
    wants: createFilter(spec),
    deliver: async (envelope, signal) => {
      // A dropped event ends as if the channel had lost it.
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
  options: RouteOptions,
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

/** Filters the events of a Trigger, in both forms of the manifest. */
type Matches = (event: CloudEvent) => boolean;

/** `spec.filters` overrides `spec.filter`; without either every event matches. */
export const createFilter = ({ filter, filters }: Pick<Trigger['spec'], 'filter' | 'filters'>): Matches => {
  if (filters !== undefined && filters.length > 0) {
    const all = filters.map(compile);
    return (event) => all.every((matches) => matches(event));
  }
  const wanted = Object.entries(filter?.attributes ?? {});
  return (event) => wanted.every(([name, value]) => isWanted(attributeOf(event, name), value));
};

/** In `filter.attributes` an empty value matches any non-empty one. */
const isWanted = (actual: unknown, wanted: string): boolean =>
  wanted === '' ? actual !== undefined && actual !== '' : actual === wanted;

const compile = ({ exact, prefix, suffix, all, any, not }: Filter): Matches => {
  if (all !== undefined) return everyOf(all.map(compile));
  if (any !== undefined) {
    const options = any.map(compile);
    return (event) => options.some((matches) => matches(event));
  }
  if (not !== undefined) {
    const matches = compile(not);
    return (event) => !matches(event);
  }
  if (prefix !== undefined) return texts(prefix, (actual, wanted) => actual.startsWith(wanted));
  if (suffix !== undefined) return texts(suffix, (actual, wanted) => actual.endsWith(wanted));
  return texts(exact ?? {}, (actual, wanted) => actual === wanted);
};

const everyOf =
  (matchers: readonly Matches[]): Matches =>
  (event) =>
    matchers.every((matches) => matches(event));

/** Extensions that are not strings match nothing, as in Knative. */
const texts = (map: Readonly<Record<string, string>>, compare: (actual: string, wanted: string) => boolean): Matches =>
  everyOf(
    Object.entries(map).map(([name, wanted]) => (event: CloudEvent) => {
      const actual = attributeOf(event, name);
      return typeof actual === 'string' && compare(actual, wanted);
    }),
  );

const attributeOf = (event: CloudEvent, name: string): unknown => {
  const { extensions, data: _, ...core } = event;
  const attributes: Readonly<Record<string, unknown>> = { specversion: '1.0', ...core };
  if (Object.hasOwn(attributes, name)) return attributes[name];
  return Object.hasOwn(extensions, name) ? extensions[name] : undefined;
};
