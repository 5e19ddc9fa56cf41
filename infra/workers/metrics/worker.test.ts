// The Worker under workerd, between something that scrapes and something that answers as an API server does.
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApp } from '#functions/metrics/app.ts';
import { createFetchTransport } from '#shared/clients/kube/fetch.ts';
import { createClientOver } from '#shared/clients/kube/verbs.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type RunningServer, startServer } from '#shared/runtime/serve.ts';
import { type RunningWorkers, startWorkers } from '#test/support/workers.ts';

const image = {
  metadata: { name: 'jammy', namespace: 'default', uid: 'u-1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { source: { http: 'https://images.example/jammy.img' } },
  status: { phase: 'Available', conditions: [{ type: 'Ready', status: 'True' }] },
};

describe('the Worker for metrics', { timeout: 240_000 }, () => {
  let api: RunningServer;
  let workers: RunningWorkers;
  beforeAll(async () => {
    const app = new Hono().get('*', (c) => {
      if (c.req.header('authorization') !== 'Bearer of-the-account') return c.json({ message: 'who are you?' }, 401);
      const isImages = c.req.path === '/apis/hypercloud.tmaxanc.com/v1alpha1/virtualmachineimages';
      return c.json({ metadata: {}, items: isImages ? [image] : [] });
    });
    api = await startServer({ app, log: silentLogger, port: 0, drainMs: 100 });
    workers = await startWorkers([
      {
        configPath: 'infra/workers/metrics/wrangler.jsonc',
        vars: { KUBERNETES_URL: api.url },
        secrets: { KUBERNETES_TOKEN: 'of-the-account', SCRAPE_TOKEN: 'shared' },
      },
    ]);
  });
  afterAll(async () => {
    await workers?.close();
    await api?.close();
  });

  const scrape = (token: string) =>
    workers.server.fetch('http://worker.example/metrics', { headers: { authorization: `Bearer ${token}` } });
  /** Gauges of time aside. */
  const settled = (text: string) => text.split('\n').filter((line) => !/seconds|age/.test(line));

  it('returns what the function returns', async () => {
    const kube = createClientOver(createFetchTransport({ server: api.url, token: 'of-the-account' }), api.url);
    const own = await createApp({ kube, log: silentLogger, now: Date.now }).request('/metrics');
    const answer = await scrape('shared');
    expect(answer.status).toBe(200);
    const text = await answer.text();
    expect(settled(text)).toEqual(settled(await own.text()));
    expect(text).toMatch(/bullion_objects\{.*virtualmachineimages.*\} 1/);
  });

  it('returns nothing without the token', async () => {
    expect((await scrape('guessed')).status).toBe(401);
  });
});
