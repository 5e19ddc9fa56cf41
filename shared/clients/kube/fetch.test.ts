import { Hono } from 'hono';
import { describe, expect, it, onTestFinished } from 'vitest';
import { namespaces } from '#shared/api/foreign/core.ts';
import { createFetchTransport } from '#shared/clients/kube/fetch.ts';
import { createClientOver } from '#shared/clients/kube/verbs.ts';
import { withContext } from '#shared/runtime/trace.ts';
import { Denied, Unavailable } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';

interface Observed {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A client of a server with the given responses, and the requests it received. */
const clientOf = async (answer: (path: string) => Response) => {
  const observed: Observed[] = [];
  const app = new Hono().all('*', async (c) => {
    const { pathname, search } = new URL(c.req.url);
    observed.push({ method: c.req.method, path: pathname + search, headers: c.req.header(), body: await c.req.text() });
    return answer(pathname);
  });
  const server = await startServer({ app, log: silentLogger, port: 0, drainMs: 100 });
  onTestFinished(() => server.close());
  const transport = createFetchTransport({ server: `${server.url}/`, token: 'secret-token' });
  return { kube: createClientOver(transport, server.url), observed, server };
};

const status = (code: number, headers: Record<string, string> = {}) =>
  Response.json({ kind: 'Status', code, message: 'words of the server' }, { status: code, headers });

describe('the client by fetch', () => {
  it('sends its token, propagates the trace, and sets the content type', async () => {
    const { kube, observed } = await clientOf(() => Response.json({ metadata: { name: 'a' } }));
    const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), flags: '01' };
    await withContext({ trace }, () => kube.mergePatch(namespaces, { name: 'a' }, { metadata: {} }));
    expect(observed).toMatchObject([
      {
        method: 'PATCH',
        path: '/api/v1/namespaces/a',
        headers: {
          authorization: 'Bearer secret-token',
          'content-type': 'application/merge-patch+json',
          traceparent: expect.stringContaining('a'.repeat(32)) as string,
        },
        body: '{"metadata":{}}',
      },
    ]);
  });

  it('throws the same errors as the other client', async () => {
    const { kube } = await clientOf((path) => status(Number(path.split('/').at(-1))));
    const get = (name: string) => kube.get(namespaces, { name });
    expect(await get('404')).toBeUndefined();
    await expect(get('403')).rejects.toThrow(Denied);
    await expect(get('503')).rejects.toThrow(/words of the server/);
    await expect(get('503')).rejects.toThrow(Unavailable);
  });

  it('waits for the requested time', async () => {
    const { kube } = await clientOf(() => status(429, { 'retry-after': '7' }));
    await expect(kube.get(namespaces, { name: 'a' })).rejects.toMatchObject({ retryAfterSeconds: 7 });
  });

  it('sends its token to no other server', async () => {
    const { kube, observed } = await clientOf((path) =>
      path.endsWith('/a') ? new Response(null, { status: 307, headers: { location: '/elsewhere' } }) : status(200),
    );
    await expect(kube.get(namespaces, { name: 'a' })).rejects.toThrow(/status 307/);
    expect(observed).toHaveLength(1);
  });

  it('reports an unreachable server', async () => {
    const { kube, server } = await clientOf(() => status(200));
    await server.close();
    await expect(kube.get(namespaces, { name: 'a' })).rejects.toThrow(Unavailable);
  });

  it('reads a watch line by line, until it ends', async () => {
    const lines = ['a', 'b'].map((name) => JSON.stringify({ type: 'ADDED', object: { metadata: { name } } }));
    const { kube } = await clientOf(() => new Response(`${lines.join('\n')}\n`));
    const watch = kube.watch(namespaces, { signal: AbortSignal.timeout(60_000) });
    const names = await Array.fromAsync(watch, ({ object }) => object.metadata.name);
    expect(names).toEqual(['a', 'b']);
  });
});
