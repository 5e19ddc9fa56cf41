// Woken each minute: drives whatever is not settled. Also takes the events nobody could handle, and shows them to people.
import { Hono } from 'hono';
import type { DriverDeps } from '#shared/resources/driver.ts';
import { handleDeadLetter } from '#shared/resources/handle.ts';
import { tick } from '#shared/resources/tick.ts';
import { anyEventFunction, eventFunction } from '#shared/runtime/event-function.ts';

export const createApp = (deps: DriverDeps): Hono => {
  const { log } = deps;
  const deadLetters = anyEventFunction({ name: 'dead-letters', log, handle: (event) => handleDeadLetter(deps, event) });
  const ticks = eventFunction({ name: 'cron-tick', log, handle: (_event, { signal }) => tick(deps, signal) });
  return new Hono().route('/dead-letters', deadLetters).route('/', ticks);
};
