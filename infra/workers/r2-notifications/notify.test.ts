import { expect, it } from 'vitest';
import { createNotifier } from '#infra/workers/r2-notifications/notify.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';

const hint = { bucket: 'images', key: 'a.img' };
const about = { id: '1', time: new Date(0) };

it('reports an unreachable server, and does not throw', async () => {
  const server = await startServer({ app: { fetch: () => new Response() }, log: silentLogger, port: 0, drainMs: 100 });
  await server.close();
  expect(await createNotifier({ url: server.url, token: 't' })(hint, about)).toEqual({
    kind: 'unreachable',
    message: expect.stringContaining('import-object cannot be reached: ') as string,
  });
});

it('does not follow redirects with its token, and truncates answers', async () => {
  const observed: string[] = [];
  const app = {
    fetch: ({ url }: Request) => {
      observed.push(new URL(url).pathname);
      return new Response('x'.repeat(10_000), { status: 302, headers: { location: '/elsewhere' } });
    },
  };
  const server = await startServer({ app, log: silentLogger, port: 0, drainMs: 100 });
  const answer = await createNotifier({ url: server.url, token: 't' })(hint, about);
  await server.close();
  expect(answer).toMatchObject({ kind: 'answered', status: 302, message: 'x'.repeat(300) });
  expect(observed).toEqual(['/']);
});
