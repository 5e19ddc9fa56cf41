// Invoked by add and update events of images: reconciles the image by one step.
import type { Hono } from 'hono';
import { handleObjectEvent } from '#shared/resources/handle.ts';
import { eventFunction } from '#shared/runtime/event-function.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

export const createApp = (deps: ReconcileDeps): Hono =>
  eventFunction({ name: 'initialize', log: deps.log, handle: (event) => handleObjectEvent(deps, event) });
