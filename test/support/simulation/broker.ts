// The broker between what happens and the functions: it loses, repeats and delays in bad weather, and tries again as the Triggers say.
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
  /** To all who want it. */
  readonly publish: (event: CloudEvent) => void;
  /** After an attempt that failed; `afterSeconds` is what the function asked for. */
  readonly again: (delivery: Delivery, afterSeconds?: number) => void;
  /** One that is due, and is then on its way. */
  readonly take: () => Delivery | undefined;
  /** When there is something to take, in milliseconds since the epoch. */
  readonly times: () => readonly number[];
}

const maxDelayMs = 90_000;

/** `now` gives milliseconds since the epoch. */
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
