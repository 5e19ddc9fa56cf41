// Woken by changes of the objects backends make, and by progress of transfers: drives the image they belong to.
import type { Hono } from 'hono';
import type { DriverDeps } from '#shared/resources/driver.ts';
import { handleChildEvent } from '#shared/resources/handle.ts';
import { eventFunction } from '#shared/runtime/event-function.ts';

export const createApp = (deps: DriverDeps): Hono =>
  eventFunction({ name: 'sidecar-sync', log: deps.log, handle: (event) => handleChildEvent(deps, event) });
