// The broker between changes and functions: it loses, repeats and delays events during a storm, and retries as the Triggers specify.
import type { CloudEvent } from '#events/event.ts';
import type { Weather } from '#test/support/simulation/chaos.ts';
import { type Route, createRoutes } from '#test/support/simulation/eventing.ts';

export interface Delivery {
  readonly route: Route;
  readonly event: CloudEvent;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly attempt: number;
}

export interface Broker {
  /** To all subscribers. */
  readonly publish: (event: CloudEvent) => void;
  /** After a failed attempt; `afterSeconds`: the delay requested by the function. */
  readonly again: (delivery: Delivery, afterSeconds?: number) => void;
  /** A due delivery, which is then in progress. */
  readonly take: () => Delivery | undefined;
  /** Times of due deliveries, in milliseconds since the epoch. */
  readonly times: () => readonly number[];
}

const maxDelayMs = 90_000;

/** `now` returns milliseconds since the epoch. */
export const createBroker = (now: () => number, weather: Weather): Broker => {
  const { random, strikes, isStormy } = weather;
  const routes = createRoutes(now);
  let queue: Delivery[] = [];

  const send = (route: Route, event: CloudEvent, attempt = 1, afterMs = 0) => {
    const times = strikes('drop') ? 0 : strikes('repeat') ? 2 : 1;
    for (let index = 0; index < times; index += 1) {
      const delayMs = strikes('delay') ? random.below(maxDelayMs) : 0;
      queue.push({ route, event, attempt, at: now() + afterMs + delayMs });
    }
  };

  return {
    publish: (event) => {
      for (const route of routes) if (route.wants(event)) send(route, event);
    },
    again: ({ route, event, attempt }, afterSeconds) => {
      const delayMs = route.again(attempt, afterSeconds);
      if (delayMs !== undefined) send(route, event, attempt + 1, delayMs);
    },
    take: () => {
      const due = queue.filter(({ at }) => at <= now());
      if (due.length === 0) return undefined;
      const next = due[isStormy() ? random.below(due.length) : 0]!;
      queue = queue.filter((delivery) => delivery !== next);
      return next;
    },
    times: () => queue.map(({ at }) => at),
  };
};
