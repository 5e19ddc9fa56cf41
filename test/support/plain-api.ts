// An API server as Workers access it: for tests that run them under workerd.
import { Hono } from 'hono';
import { Agent, request } from 'undici';
import { loadKubeConfig } from '#shared/clients/kube/create.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type RunningServer, startServer } from '#shared/runtime/serve.ts';

export interface PlainApi extends RunningServer {
  readonly token: string;
}

/**
 * The API server without TLS, on loopback: in production a tunnel or a load balancer with a public certificate. The caller is authenticated by
 * the token of the Worker. `own`: requests that are answered here instead of by the API server.
 */
export const startPlainApi = async (kubeconfigPath: string, own: Hono = new Hono()): Promise<PlainApi> => {
  const config = loadKubeConfig(kubeconfigPath);
  const { server = '', caData = '' } = config.getCurrentCluster() ?? {};
  const dispatcher = new Agent({ connect: { ca: Buffer.from(caData, 'base64').toString() } });
  const app = new Hono().route('/', own).all('*', async (c) => {
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
