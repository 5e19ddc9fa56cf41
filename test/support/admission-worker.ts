// `validate` and `mutate` as the Worker that infra/workers deploys, under workerd: for tests that ask them over an API server.
import { Hono } from 'hono';
import { Agent, request } from 'undici';
import { loadKubeConfig } from '#shared/clients/kube/create.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type RunningServer, startServer } from '#shared/runtime/serve.ts';
import type { StartFunctions } from '#test/support/door.ts';
import { startWorkers } from '#test/support/workers.ts';

export interface PlainApi extends RunningServer {
  readonly token: string;
}

/**
 * The API server without TLS, on loopback: what a tunnel or a load balancer with a public certificate is to a Worker in production. Who asks is
 * for the token to say that the Worker shows.
 */
export const startPlainApi = async (kubeconfigPath: string): Promise<PlainApi> => {
  const config = loadKubeConfig(kubeconfigPath);
  const { server = '', caData = '' } = config.getCurrentCluster() ?? {};
  const dispatcher = new Agent({ connect: { ca: Buffer.from(caData, 'base64').toString() } });
  const app = new Hono().all('*', async (c) => {
    const { pathname, search } = new URL(c.req.url);
    const { authorization = '', ...rest } = c.req.header();
    const answer = await request(server + pathname + search, {
      method: c.req.method as 'GET',
      headers: {
        authorization,
        ...(rest['content-type'] === undefined ? {} : { 'content-type': rest['content-type'] }),
      },
      body: c.req.method === 'GET' ? null : await c.req.text(),
      dispatcher,
    });
    return new Response(await answer.body.text(), { status: answer.statusCode });
  });
  const running = await startServer({ app, log: silentLogger, port: 0, drainMs: 100 });
  const close = async () => {
    await running.close();
    await dispatcher.close();
  };
  return { ...running, close, token: config.getCurrentUser()?.token ?? '' };
};

export const asWorker: StartFunctions = async (kubeconfigPath) => {
  const api = await startPlainApi(kubeconfigPath);
  const workers = await startWorkers([
    {
      configPath: 'infra/workers/admission/wrangler.jsonc',
      vars: { KUBERNETES_URL: api.url },
      secrets: { KUBERNETES_TOKEN: api.token, WEBHOOK_TOKEN: 'shared' },
    },
  ]);
  const app = new Hono();
  app.on('POST', ['/validate', '/mutate'], async (c) => {
    const { pathname, search } = new URL(c.req.url);
    const headers = { 'content-type': 'application/json', authorization: 'Bearer shared' };
    const body = await c.req.text();
    const answer = await workers.server.fetch(`http://worker.example${pathname}${search}`, {
      method: 'POST',
      headers,
      body,
    });
    return new Response(await answer.text(), {
      status: answer.status,
      headers: { 'content-type': 'application/json' },
    });
  });
  return {
    app,
    close: async () => {
      await workers.close();
      await api.close();
    },
  };
};
