// Common parts of Workers for a cluster: settings, the client of its API server, and authentication of callers by a token.
import { z } from 'zod';
import { createFetchTransport } from '#shared/clients/kube/fetch.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createClientOver } from '#shared/clients/kube/verbs.ts';
import { showsToken } from '#shared/runtime/bearer.ts';
import { setting } from '#shared/runtime/config.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { type WorkerEnvironment, beginWorker, safeUrl, workerSettings } from '#infra/workers/settings.ts';

export const clusterSettings = {
  ...workerSettings,
  server: setting(
    'KUBERNETES_URL',
    'https URL of the API server, with a certificate of a public authority: Workers trust no other.',
    safeUrl,
  ),
  clusterToken: setting(
    'KUBERNETES_TOKEN',
    'Token of the service account of the function; a secret.',
    z.string().min(1),
  ),
} as const;

type ClusterConfig = z.output<z.ZodObject<typeof clusterSettings>>;

export interface App {
  fetch(request: Request): Response | Promise<Response>;
}

interface Parts {
  readonly kube: KubeClient;
  readonly log: Logger;
}

/** `name`: in every log line. `createApp` creates an app for one request: Workers may not await I/O of another request. */
export const clusterWorker = <S extends typeof clusterSettings & Readonly<Record<string, z.ZodType>>>(
  name: string,
  schema: z.ZodObject<S>,
  createApp: (config: z.output<z.ZodObject<S>>, parts: Parts) => App,
) => ({
  /** Throws InvalidInput if the settings are invalid. */
  fetch: async (request: Request, env: WorkerEnvironment): Promise<Response> => {
    const { config, log } = beginWorker(name, schema, env);
    const { server, clusterToken } = config as ClusterConfig;
    const kube = createClientOver(createFetchTransport({ server, token: clusterToken }), server);
    return createApp(config, { kube, log }).fetch(request);
  },
});

/** A Worker is reachable from the whole internet: requests without the token get no information. `name`: the setting with the token. */
export const guarded = (
  app: App,
  { token, name }: { readonly token: string; readonly name: string },
  log: Logger,
): App => ({
  fetch: (request) => {
    if (showsToken(request.headers, token)) return app.fetch(request);
    log.warn('caller refused', { reason: 'wrong token' });
    return new Response(`the Authorization header is not "Bearer " and the token of ${name}`, { status: 401 });
  },
});
