// Woken each minute: reconciles whatever is not settled. Also takes the events nobody could handle, and shows them to people.
import { Hono } from 'hono';
import { renewCertificate } from '#shared/certificate/renew.ts';
import type { ReconcileDeps } from '#shared/resources/reconcile.ts';
import { handleDeadLetter } from '#shared/resources/handle.ts';
import { tick } from '#shared/resources/sweep.ts';
import { anyEventFunction, eventFunction } from '#shared/runtime/event-function.ts';
import type { Outcome } from '#shared/runtime/outcome.ts';

export interface Deps extends ReconcileDeps {
  /** Whether the certificate of admission is ours to keep fresh; left out: it is not. */
  readonly ownCertificate?: boolean;
}

/** The next tick tries again: what is there is good for weeks. */
const tend = async ({ ownCertificate = false, kube, now, log }: Deps): Promise<void> => {
  if (!ownCertificate) return;
  try {
    await renewCertificate(kube, now());
  } catch (error) {
    log.error('certificate not tended', { error });
  }
};

const work = async (deps: Deps, signal: AbortSignal): Promise<Outcome> => {
  const [outcome] = await Promise.all([tick(deps, signal), tend(deps)]);
  return outcome;
};

export const createApp = (deps: Deps): Hono => {
  const { log } = deps;
  const deadLetters = anyEventFunction({ name: 'dead-letters', log, handle: (event) => handleDeadLetter(deps, event) });
  const ticks = eventFunction({ name: 'cron-tick', log, handle: (_event, { signal }) => work(deps, signal) });
  return new Hono().route('/dead-letters', deadLetters).route('/', ticks);
};
