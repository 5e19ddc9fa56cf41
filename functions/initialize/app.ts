// Woken by add and update events of images: drives the image one step on.
import type { Hono } from 'hono';
import type { DriverDeps } from '#shared/resources/driver.ts';
import { handleObjectEvent } from '#shared/resources/handle.ts';
import { eventFunction } from '#shared/runtime/event-function.ts';

export const createApp = (deps: DriverDeps): Hono =>
  eventFunction({ name: 'initialize', log: deps.log, handle: (event) => handleObjectEvent(deps, event) });
