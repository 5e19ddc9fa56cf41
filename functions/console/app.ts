// The catalogue in the browser. It acts with the rights of who looks.
import { createConsole } from '#shared/console/console.ts';
import type { ConsoleApp, ConsoleDeps } from '#shared/console/visit.ts';

export const createApp = (deps: ConsoleDeps): ConsoleApp => createConsole(deps);
