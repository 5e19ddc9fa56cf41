// The functions of a simulated world, called as by the Triggers.
import type { CloudEvent } from '#events/event.ts';
import { parseEvent } from '#events/receive.ts';
import { type BackendRegistry, backends as ours } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Observation } from '#shared/golden/poll/observation.ts';
import type { ObserveRequest } from '#shared/golden/poll/observe.ts';
import type { Announce } from '#shared/resources/announcer.ts';
import { handleChildEvent, handleObjectEvent } from '#shared/resources/handle.ts';
import { createTicker } from '#shared/resources/ticker.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';
import { aGoodFile, testSettings } from '#test/support/builders.ts';
import { type Route, taken } from '#test/support/simulation/eventing.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { nothingElse } from '#test/support/reconcile.ts';

export interface FunctionsOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Default: those of the product. */
  readonly backends?: BackendRegistry | undefined;
  /** DataVolumes are handled by an installed CDI. Default: by our own functions. */
  readonly cdi?: 'use' | undefined;
  /** Answers of sources of golden images to polls, `now` in ms since the epoch. Default: no polls. */
  readonly observe?: ((request: ObserveRequest, now: number) => Observation) | undefined;
  /** Answers of sources are sent over the broker, and may be lost. */
  readonly publish: (event: CloudEvent) => void;
  readonly announce: Announce;
}

/** Longer than in an installation: more is left to what moves. */
const sweepMs = 720_000;

export type CallFunction = (to: Route['to'], event: CloudEvent, client: KubeClient) => Promise<Outcome>;

export const createFunctions = ({
  now,
  backends = ours,
  cdi,
  observe,
  publish,
  announce,
}: FunctionsOptions): CallFunction => {
  const polling: Pick<ReconcileDeps, 'observe' | 'send'> =
    observe === undefined
      ? {}
      : {
          observe: async (request) => observe(request, now()),
          send: async (event) => {
            publish(event);
            return taken;
          },
        };

  const look = { look: async () => aGoodFile, ...(cdi === undefined ? {} : { cdi: async () => cdi }) };

  const ticker = createTicker(sweepMs);

  return (to, event, kube) => {
    const deps = {
      ...nothingElse,
      kube,
      backends,
      settings: testSettings,
      now,
      log: silentLogger,
      announce,
      ...polling,
      ...look,
    };
    if (to === 'initialize') return handleObjectEvent(deps, parseEvent(event));
    if (to === 'sidecar-sync') return handleChildEvent(deps, parseEvent(event));
    if (to === 'cron-tick') return ticker(deps);
    // Functions that reconcile none of the objects in scenarios.
    return Promise.resolve(done);
  };
};
