// Invoked each minute: reconciles what is not settled. Also receives dead letters, and records them as Kubernetes Events.
import { Hono } from 'hono';
import { renewCertificate } from '#shared/certificate/renew.ts';
import { handleDeadLetter } from '#shared/resources/handle.ts';
import { followKinds } from '#shared/resources/event-sources.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { TickDeps } from '#shared/resources/deps.ts';
import { createTicker } from '#shared/resources/ticker.ts';
import { anyEventFunction, eventFunction } from '#shared/runtime/event-function.ts';
import { isConflict } from '#shared/runtime/errors.ts';

export interface CronTickDeps extends TickDeps {
  /** Whether Bullion manages the webhook certificate. Default: false. */
  readonly ownCertificate?: boolean;
  /** Seconds between two sweeps at rest. Default: each tick sweeps. */
  readonly sweepSeconds?: number;
  /** How much other functions of this process have written so far. Default: there are none. */
  readonly writesElsewhere?: () => number;
}

/** Whether the work was done. The next tick retries: existing objects stay valid meanwhile. */
const orLog = async ({ log }: CronTickDeps, message: string, work: () => Promise<boolean>): Promise<boolean> => {
  try {
    return await work();
  } catch (error) {
    // Another tick was first.
    if (!isConflict(error)) log.error(message, { error });
    return false;
  }
};

const maintain = async (deps: CronTickDeps, kube: KubeClient): Promise<boolean> => {
  const { ownCertificate = false, now } = deps;
  const done = await Promise.all([
    orLog(deps, 'certificate not renewed', async () => !ownCertificate || renewCertificate(kube, now())),
    orLog(deps, 'event sources not updated', async () => followKinds(kube).then(() => true)),
  ]);
  return done.every(Boolean);
};

export const createApp = (deps: CronTickDeps): Hono => {
  const { log, sweepSeconds = 0, writesElsewhere = () => 0 } = deps;
  const ticker = createTicker(sweepSeconds * 1000);
  let letters = 0;
  const deadLetters = anyEventFunction({
    name: 'dead-letters',
    log,
    handle: (event) => {
      letters += 1;
      return handleDeadLetter(deps, event);
    },
  });
  const ticks = eventFunction({
    name: 'cron-tick',
    log,
    handle: (_event, { signal }) =>
      ticker(deps, { signal, also: (kube) => maintain(deps, kube), news: letters + writesElsewhere() }),
  });
  return new Hono().route('/dead-letters', deadLetters).route('/', ticks);
};
