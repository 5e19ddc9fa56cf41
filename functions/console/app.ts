// The catalogue in the browser. It acts with the rights of who looks.
import type { Hono } from 'hono';
import { createConsole } from '#shared/console/console.ts';
import type { ConsoleDeps } from '#shared/console/visit.ts';

export const createApp = (deps: ConsoleDeps): Hono => createConsole(deps);
