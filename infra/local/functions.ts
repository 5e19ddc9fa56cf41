// Every function in this process, configured for the local cluster. Called by cluster.ts.
import { Hono } from 'hono';
import { z } from 'zod';
import { createApp as createCronTick } from '#functions/cron-tick/app.ts';
import { createApp as createInitialize } from '#functions/initialize/app.ts';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createSidecarSync } from '#functions/sidecar-sync/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import type { Subscriber } from '#infra/local/broker/resolver.ts';
import { createDriverDeps, driverSettings } from '#shared/resources/settings.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import type { Logger } from '#shared/runtime/log.ts';

/** Local mirrors and test servers listen on loopback. */
const loopback = '127.0.0.0/8,::1/128';

export interface FunctionsOptions {
  readonly kubeconfigPath: string;
  readonly brokerUrl: string;
  readonly log: Logger;
  /** Overrides of the functions' own environment. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Functions {
  /** Event functions by the names that the Knative manifests know them by. */
  readonly subscribers: ReadonlyMap<string, Subscriber>;
  /** Both admission functions. */
  readonly admission: Hono;
  /** OCI image that Jobs of the functions name. */
  readonly transferImage: string;
}

export const createFunctions = ({ kubeconfigPath, brokerUrl, log, environment }: FunctionsOptions): Functions => {
  const config = parseConfig(z.object(driverSettings), {
    KUBECONFIG: kubeconfigPath,
    K_SINK: brokerUrl,
    ALLOWED_ADDRESSES: loopback,
    ...environment,
  });
  const deps = createDriverDeps(config, log);
  const admission = new Hono();
  for (const app of [createValidate(deps), createMutate(deps)]) admission.route('/', app);
  const handlers = [
    ['initialize', createInitialize(deps)],
    ['sidecar-sync', createSidecarSync(deps)],
    ['cron-tick', createCronTick(deps)],
  ] as const;
  return {
    admission,
    transferImage: config.transferImage,
    subscribers: new Map(handlers.map(([name, app]) => [name, async (request: Request) => app.fetch(request)])),
  };
};
