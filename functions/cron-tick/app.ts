// Invoked each minute: reconciles everything that is not settled. Also receives dead letters, and records them as Kubernetes Events.
import { Hono } from 'hono';
import { renewCertificate } from '#shared/certificate/renew.ts';
import { handleDeadLetter } from '#shared/resources/handle.ts';
import { followKinds } from '#shared/resources/event-sources.ts';
import type { TickDeps } from '#shared/resources/deps.ts';
import { tick } from '#shared/resources/sweep.ts';
import { anyEventFunction, eventFunction } from '#shared/runtime/event-function.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import type { Outcome } from '#shared/runtime/outcome.ts';

export interface CronTickDeps extends TickDeps {
  /** Whether Bullion manages the webhook certificate. Default: false. */
  readonly ownCertificate?: boolean;
}

/** The next tick retries: existing objects stay valid meanwhile. */
const orLog = async ({ log }: CronTickDeps, message: string, work: () => Promise<void>): Promise<void> => {
  try {
    await work();
  } catch (error) {
    // Another tick was first.
    if (!isConflict(error)) log.error(message, { error });
  }
};

const work = async (deps: CronTickDeps, signal: AbortSignal): Promise<Outcome> => {
  const { ownCertificate = false, kube, now } = deps;
  const [outcome] = await Promise.all([
    tick(deps, signal),
    orLog(deps, 'certificate not renewed', () => (ownCertificate ? renewCertificate(kube, now()) : Promise.resolve())),
    orLog(deps, 'event sources not updated', () => followKinds(kube)),
  ]);
  return outcome;
};

export const createApp = (deps: CronTickDeps): Hono => {
  const { log } = deps;
  const deadLetters = anyEventFunction({ name: 'dead-letters', log, handle: (event) => handleDeadLetter(deps, event) });
  const ticks = eventFunction({ name: 'cron-tick', log, handle: (_event, { signal }) => work(deps, signal) });
  return new Hono().route('/dead-letters', deadLetters).route('/', ticks);
};
