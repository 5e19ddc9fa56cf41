import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CloudEvent } from '#events/event.ts';
import { createHandlerPost, type FetchHandler } from '#events/post.ts';
import { createSender, type SocketSenderOptions } from '#events/send.ts';
import { parseTraceparent, withContext } from '#shared/runtime/trace.ts';
import { startServer } from '#shared/runtime/serve.ts';
import { silentLogger } from '#shared/runtime/log.ts';

const event: CloudEvent = {
  id: 'e-1',
  source: '/s',
  type: 't',
  datacontenttype: 'application/json',
  extensions: { namespace: '' },
  data: { a: 1 },
};

/** A sink that answers with the given statuses in turn, then 204, and a clock that only counts. */
const given = (statuses: readonly (number | Error)[], options: Partial<SocketSenderOptions> = {}) => {
  const requests: Request[] = [];
  const waits: number[] = [];
  const handler: FetchHandler = (request) => {
    const next = statuses[requests.push(request) - 1] ?? 204;
    if (next instanceof Error) throw next;
    return new Response(null, { status: next });
  };
  const send = createSender({
    sink: 'http://sink/',
    post: createHandlerPost(async (request) => handler(request)),
    sleep: async (ms) => void waits.push(ms),
    ...options,
  });
  return { send, requests, waits };
};

describe('createSender', () => {
  it('sends the current token in its file, and none when there is no file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bullion-token-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const tokenFile = join(folder, 'token');
    const { send, requests } = given([], { tokenFile });
    await send(event);
    for (const token of ['first', 'second']) {
      await writeFile(tokenFile, `${token}\n`);
      await send(event);
    }
    const shown = requests.map(({ headers }) => headers.get('authorization'));
    expect(shown).toEqual([null, 'Bearer first', 'Bearer second']);
  });

  it.each([404, 413, 425, 429, 502, 503, 504])(
    'retries status %d with the delays of a Knative source',
    async (status) => {
      const { send, requests, waits } = given(Array<number>(9).fill(status));
      expect(await send(event)).toMatchObject({ isDelivered: false, attempts: 6 });
      expect(waits).toEqual([100, 200, 400, 800, 1600]);
      expect(new Set(requests.map(({ headers }) => headers.get('ce-id')))).toEqual(new Set(['e-1']));
    },
  );

  it.each([301, 400, 401, 403, 405, 408, 409, 410, 415, 422, 500, 501])(
    'drops the event at status %d',
    async (status) => {
      const { send, waits } = given([status]);
      expect(await send(event)).toMatchObject({ isDelivered: false, attempts: 1, last: { answer: { status } } });
      expect(waits).toEqual([]);
    },
  );

  it.each([200, 202, 204])('accepts status %d', async (status) => {
    expect(await given([status]).send(event)).toMatchObject({ isDelivered: true, attempts: 1 });
  });

  it('retries when there is no answer', async () => {
    const { send } = given([new Error('refused')]);
    expect(await send(event)).toMatchObject({ isDelivered: true, attempts: 2 });
  });

  it('aborts an attempt that takes too long, and retries', async () => {
    let calls = 0;
    const slow: FetchHandler = () =>
      (calls += 1) === 1 ? new Promise(() => undefined) : new Response(null, { status: 204 });
    const { send } = given([], { post: createHandlerPost(slow), timeoutMs: 20 });
    expect(await send(event)).toMatchObject({ isDelivered: true, attempts: 2 });
  });

  it('stops when aborted', async () => {
    const stop = new AbortController();
    const { send } = given([503, 503], {
      sleep: async () => stop.abort(),
    });
    expect(await send(event, stop.signal)).toMatchObject({ isDelivered: false, attempts: 2 });
  });

  it('propagates the trace of the current invocation, or otherwise that of the event', async () => {
    const own = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const other = '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00';
    const traced = { ...event, extensions: { traceparent: own } };
    const { send, requests } = given([]);
    await send(traced);
    await withContext({ trace: parseTraceparent(other)! }, () => send(traced));
    expect(requests.map(({ headers }) => headers.get('traceparent'))).toEqual([own, other]);
  });
});

describe('createSender over a socket', () => {
  it('posts in binary mode, keeps an empty attribute, and follows no redirect', async () => {
    const observed: { headers: Headers; body: string }[] = [];
    const server = await startServer({
      app: {
        fetch: async (request) => {
          observed.push({ headers: request.headers, body: await request.text() });
          return new Response(null, { status: 307, headers: { location: '/elsewhere' } });
        },
      },
      log: silentLogger,
      port: 0,
    });
    const delivery = await createSender({ sink: `${server.url}/` })(event);
    expect(delivery).toMatchObject({ isDelivered: false, attempts: 1 });
    expect(observed).toHaveLength(1);
    expect(observed[0]?.headers.get('ce-namespace')).toBe('');
    expect(observed[0]?.headers.get('content-type')).toBe('application/json');
    expect(observed[0]?.body).toBe('{"a":1}');
    await server.close();
    const refused = createSender({ sink: server.url, sleep: async () => undefined });
    expect(await refused(event)).toMatchObject({ isDelivered: false, attempts: 6, last: { kind: 'unreachable' } });
  });
});
