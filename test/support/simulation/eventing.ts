// Delivery of changes from the simulated API to functions: the product's own forwarder over the watches of the in-memory API, and the generated
// Triggers, which define subscribers and retries.
import type { Delivery as Sent, Sleep } from '#events/sender.ts';
import type { CloudEvent } from '#events/event.ts';
import { type Forwarder, startForwarder } from '#events/forward/forwarder.ts';
import { children, objects } from '#infra/generate/declared.ts';
import { buildBroker, buildTrigger, watchedChildren } from '#infra/generate/knative.ts';
import { type EventFunction, eventFunctions } from '#infra/generate/event-functions.ts';
import { createFilter } from '#local-cluster/broker/route.ts';
import { parseBrokerManifests } from '#local-cluster/broker/manifest.ts';
import { createPolicy, effectiveDelivery } from '#local-cluster/broker/dispatch.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { silentLogger } from '#shared/runtime/log.ts';

export interface Route {
  readonly to: EventFunction['name'];
  readonly wants: (event: CloudEvent) => boolean;
  /** Milliseconds until the next attempt after the `attempt`-th one failed; undefined: no more attempts. */
  readonly again: (attempt: number, retryAfterSeconds: number | undefined) => number | undefined;
}

const declared = { objects, children: children.map(({ type }) => type) };

/** The Triggers of the product. `now` returns milliseconds since the epoch. */
export const createRoutes = (now: () => number): readonly Route[] => {
  const triggers = eventFunctions.flatMap((fn) =>
    fn.subscriptions.map((subscription) => buildTrigger(fn, subscription, declared)),
  );
  const parsed = parseBrokerManifests([buildBroker(), ...triggers]);
  return parsed.triggers.map(({ spec }) => {
    const delivery = effectiveDelivery(spec.delivery, parsed.broker.spec.delivery);
    const policy = createPolicy(delivery, 'MTChannelBasedBroker', () => new Date(now()));
    return {
      to: spec.subscriber.ref?.name ?? '',
      wants: createFilter(spec),
      again: (attempt, retryAfterSeconds) => {
        if (attempt > policy.retries) return undefined;
        const headers = new Headers(retryAfterSeconds === undefined ? {} : { 'retry-after': `${retryAfterSeconds}` });
        return policy.delayMs(attempt, { kind: 'answered', answer: { status: 503, headers, body: new Uint8Array() } });
      },
    };
  });
};

export interface WatchingOptions {
  readonly client: KubeClient;
  readonly onEvent: (event: CloudEvent) => void;
  /** On the clock of the world. */
  readonly sleep: Sleep;
  readonly now: () => number;
}

/** The answer to a sender. */
export const taken: Sent = {
  isDelivered: true,
  attempts: 1,
  last: { kind: 'answered', answer: { status: 202, headers: new Headers(), body: new Uint8Array() } },
};

/** Both sources of the product, with one watch per kind. */
export const startWatching = ({ client, onEvent, sleep, now }: WatchingOptions): Forwarder => {
  let ids = 0;
  return startForwarder({
    client,
    resources: [
      ...declared.objects.map((type) => ({ type })),
      ...watchedChildren(declared).map((type) => ({ type, labelSelector: labels.ownerUid })),
    ],
    mode: 'Resource',
    send: async (event) => {
      onEvent(event);
      return taken;
    },
    log: silentLogger,
    newId: () => `event-${(ids += 1)}`,
    now: () => new Date(now()),
    sleep,
  });
};
