// Both admission functions and the bare handler they are measured against, in one process of their own, each behind the product's server as in a
// pod. Started by run.ts.
import { Hono } from 'hono';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';
import { clusterOf } from '#test/support/admission.ts';

// Lines are made and thrown away: where they go is not ours to measure.
const log = createLogger({ level: 'info', write: () => undefined });
const deps = { kube: clusterOf(), log };

/** What the framework alone costs. */
const bare = new Hono();
bare.post('/echo', async (c) => c.json(await c.req.json()));

const servers = await Promise.all(
  [bare, createValidate(deps), createMutate(deps)].map((app) => startServer({ app, log, port: 0 })),
);
process.send?.(servers.map(({ port }) => port));
process.once('disconnect', () => void Promise.all(servers.map((server) => server.close())));
