import { describe, expect, it } from 'vitest';
import { createApp } from '#functions/metrics/app.ts';
import { createMetricsWorld } from '#test/support/metrics-world.ts';

describe('metrics', () => {
  it('answers a scrape in the Prometheus text format, and no other request', async () => {
    const app = createApp(createMetricsWorld());
    const response = await app.request('/metrics');
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
    ]);
    expect(await response.text()).toMatch(/^# TYPE bullion_objects gauge$/m);
    expect((await app.request('/')).status).toBe(404);
  });

  it('reads the cluster once for concurrent scrapes, and again for the next scrape', async () => {
    const deps = createMetricsWorld();
    const app = createApp(deps);
    const lists = () => deps.kube.calls.filter(({ verb }) => verb === 'list').length;
    const [first, second] = await Promise.all([app.request('/metrics'), app.request('/metrics')]);
    expect(await first.text()).toBe(await second.text());
    const once = lists();
    await app.request('/metrics');
    expect(lists()).toBe(2 * once);
  });
});
