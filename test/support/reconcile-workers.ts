// `initialize` and `sidecar-sync` as the Workers of infra/workers, under workerd, instead of those in this process: the broker calls them like
// a Knative subscriber with a URL, and they use the API server with their production accounts.
import { dirname, join } from 'node:path';
import { brokerUrl, startEventing } from '#infra/local/eventing.ts';
import type { EventingOptions } from '#infra/local/eventing.ts';
import type { Subscriber } from '#local-cluster/broker/resolver.ts';
import { createIssuer } from '#test/support/issuer.ts';
import { startPlainApi } from '#test/support/plain-api.ts';
import { type RunningWorkers, startWorkers } from '#test/support/workers.ts';

export const reconcileWorkers = ['initialize', 'sidecar-sync'] as const;
type ReconcileWorker = (typeof reconcileWorkers)[number];

export interface ReconcileWorkers {
  /** For `startTestCluster`. */
  readonly startEventing: typeof startEventing;
  /** Number of events sent to each. */
  readonly counts: Readonly<Record<ReconcileWorker, number>>;
  readonly logged: RunningWorkers['logged'];
  /** Sends one request without the token of a Trigger. */
  readonly ask: (name: ReconcileWorker, headers: Readonly<Record<string, string>>) => Promise<number>;
}

export const audienceOf = (name: ReconcileWorker): string => `https://bullion-${name}.example.workers.dev`;

interface Running {
  readonly workers: RunningWorkers;
  readonly close: () => Promise<void>;
}

const start = async (
  { kubeconfigs, manifests, port }: EventingOptions,
  app: Parameters<typeof startPlainApi>[1],
): Promise<Running> => {
  const accounts = dirname(kubeconfigs.sources);
  const apis = await Promise.all(
    reconcileWorkers.map((name) => startPlainApi(join(accounts, `${name}.kubeconfig`), app)),
  );
  const broker = brokerUrl(manifests, port);
  const workers = await startWorkers(
    reconcileWorkers.map((name, index) => ({
      configPath: `infra/workers/${name}/wrangler.jsonc`,
      vars: {
        KUBERNETES_URL: apis[index]?.url ?? '',
        OIDC_AUDIENCE: audienceOf(name),
        BROKER_URL: broker,
        TRANSFER_SINK: broker,
        ALLOWED_ADDRESSES: '127.0.0.0/8',
      },
      secrets: { KUBERNETES_TOKEN: apis[index]?.token ?? '', BROKER_TOKEN: 'of-the-broker' },
    })),
  );
  return {
    workers,
    close: async () => {
      await workers.close();
      await Promise.all(apis.map((api) => api.close()));
    },
  };
};

export const createDriverWorkers = async (): Promise<ReconcileWorkers> => {
  const issuer = await createIssuer();
  const counts = { initialize: 0, 'sidecar-sync': 0 };
  let running: Running | undefined;
  const post = async (name: ReconcileWorker, headers: Headers, body: string | undefined): Promise<Response> => {
    if (running === undefined) throw new Error('no Worker runs');
    const handle = running.workers.server.getWorker(`bullion-${name}`);
    const answer = await handle.fetch(`${audienceOf(name)}/`, {
      method: 'POST',
      headers: Object.fromEntries(headers),
      ...(body === undefined ? {} : { body }),
    });
    const text = await answer.text();
    return new Response(text === '' ? null : text, {
      status: answer.status,
      headers: Object.fromEntries(answer.headers),
    });
  };
  const subscriberOf =
    (name: ReconcileWorker): Subscriber =>
    async (request) => {
      counts[name] += 1;
      const headers = new Headers(request.headers);
      headers.set('authorization', `Bearer ${await issuer.tokenOf(`${name}-objects`, audienceOf(name))}`);
      return post(name, headers, await request.text());
    };
  return {
    counts,
    logged: () => running?.workers.logged() ?? [],
    ask: async (name, headers) => (await post(name, new Headers(headers), '{}')).status,
    startEventing: async (options) => {
      running = await start(options, issuer.app);
      const subscribers = new Map(options.subscribers);
      for (const name of reconcileWorkers) subscribers.set(name, subscriberOf(name));
      const eventing = await startEventing({ ...options, subscribers });
      const stop = async () => {
        await eventing.stop();
        await running?.close();
      };
      return { ...eventing, stop };
    },
  };
};
