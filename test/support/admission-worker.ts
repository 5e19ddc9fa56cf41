// `validate` and `mutate` as the Worker of infra/workers, under workerd: for tests that call them through an API server.
import { Hono } from 'hono';
import type { StartFunctions } from '#test/support/admission-server.ts';
import { startPlainApi } from '#test/support/plain-api.ts';
import { startWorkers } from '#test/support/workers.ts';

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
