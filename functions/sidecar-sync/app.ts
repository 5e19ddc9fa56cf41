// Invoked by changes of children of backends, and by progress of transfers: reconciles the image that owns them.
import type { Hono } from 'hono';
import { handleChildEvent } from '#shared/resources/handle.ts';
import { eventFunction } from '#shared/runtime/event-function.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

export const createApp = (deps: ReconcileDeps): Hono =>
  eventFunction({ name: 'sidecar-sync', log: deps.log, handle: (event) => handleChildEvent(deps, event) });
