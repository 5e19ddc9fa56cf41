import { describe, expect, it } from 'vitest';
import { eventTypes } from '#events/catalogue.ts';
import { currentContext } from './trace.ts';
import { Conflict, Denied, Unavailable } from '#shared/runtime/errors.ts';
import { type EventFunctionOptions, anyEventFunction, eventFunction } from '#shared/runtime/event-function.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { done, failed, retry, waiting } from '#shared/runtime/outcome.ts';

const headers = {
  'ce-specversion': '1.0',
  'ce-id': 'e-1',
  'ce-source': '/s',
  'ce-type': eventTypes.objectAdded,
  'ce-kind': 'Pod',
  'ce-namespace': 'd',
  'ce-name': 'p',
  'content-type': 'application/json',
};
const body = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'd' } });
const post = { method: 'POST', headers, body };

const given = (handle: EventFunctionOptions['handle'], deadlineMs = 5_000) => {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) });
  return { app: eventFunction({ name: 'sample', log, handle, deadlineMs }), lines };
};

describe('an event function answers', () => {
  it.each([
    ['done', () => done, 204, 'info'],
    ['waiting', () => waiting('its volume'), 204, 'info'],
    ['failed', () => failed('NoSuchFile', 'the server says 404'), 204, 'info'],
    ['retry', () => retry(2.2, 'the API is down'), 503, 'warn'],
    [
      'a retryable throw',
      () => {
        throw new Unavailable('down', { retryAfterSeconds: 7 });
      },
      503,
      'warn',
    ],
    [
      'a conflict',
      () => {
        throw new Conflict('changed');
      },
      503,
      'warn',
    ],
    [
      'a denial',
      () => {
        throw new Denied('no');
      },
      500,
      'error',
    ],
    [
      'a bug',
      () => {
        throw new TypeError('x is undefined');
      },
      500,
      'error',
    ],
  ])('to %s with the right status, an empty body and one log line', async (_, decide, status, level) => {
    const { app, lines } = given(async () => decide());
    const response = await app.request('/', post);
    expect(response.status).toBe(status);
    expect(await response.text()).toBe('');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level, function: 'sample', eventId: 'e-1', object: 'Pod d/p', status });
    expect(lines[0]).toHaveProperty('ms');
  });

  it('503 with a delay in whole seconds', async () => {
    const wait = async (handle: EventFunctionOptions['handle']) =>
      (await given(handle).app.request('/', post)).headers.get('retry-after');
    expect(await wait(async () => retry(2.2, 'down'))).toBe('3');
    expect(await wait(async () => retry(0, 'down'))).toBe('1');
    expect(await wait(() => Promise.reject(new Unavailable('down', { retryAfterSeconds: 7 })))).toBe('7');
  });

  it('400 with a message to a request that is not an event', async () => {
    const { app, lines } = given(async () => done);
    const response = await app.request('/', { ...post, headers: { ...headers, 'ce-specversion': '0.3' } });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('only "1.0" is accepted');
    expect(lines[0]).toMatchObject({ outcome: 'undecodable', status: 400 });
  });

  it('400 to an event of an unknown type, and passes any on in a function for all types', async () => {
    const other = { ...post, headers: { ...headers, 'ce-type': 'com.example.other' } };
    const { app, lines } = given(async () => done);
    expect((await app.request('/', other)).status).toBe(400);
    expect(lines[0]).toMatchObject({ outcome: 'undecodable', eventId: 'e-1', object: 'Pod d/p' });
    const types: string[] = [];
    const any = anyEventFunction({
      name: 'any',
      log: createLogger({ level: 'error' }),
      handle: async ({ type }) => (types.push(type), done),
    });
    expect((await any.request('/', other)).status).toBe(204);
    expect(types).toEqual(['com.example.other']);
  });

  it.each([
    ['known length', 'x'.repeat(2 * 1024 * 1024 + 1)],
    ['a stream', new Blob(['x'.repeat(2 * 1024 * 1024 + 1)]).stream()],
  ])('400, not 413, to a body beyond 2 MiB: %s', async (_, large) => {
    const { app } = given(async () => done);
    const init: RequestInit = { ...post, body: large, duplex: 'half' };
    const response = await app.request(new Request('http://f/', init));
    expect(response.status).toBe(400);
  });

  it('405 to GET and 204 to OPTIONS', async () => {
    const { app } = given(async () => done);
    expect((await app.request('/')).status).toBe(405);
    expect((await app.request('/elsewhere', post)).status).toBe(405);
    const options = await app.request('/', { method: 'OPTIONS' });
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'POST, OPTIONS']);
  });

  it('503 at the deadline and aborts the handler', async () => {
    let isAborted = false;
    const { app } = given((_, { signal }) => {
      signal.addEventListener('abort', () => (isAborted = true));
      return new Promise(() => undefined);
    }, 20);
    expect((await app.request('/', post)).status).toBe(503);
    expect(isAborted).toBe(true);
  });

  it('200 with a CloudEvent when the handler replies', async () => {
    const { app } = given(async (_, { reply }) => {
      reply({ id: 'r-1', source: '/s', type: 'dev.bullion.image.ready', extensions: {}, data: {} });
      return done;
    });
    const response = await app.request('/', post);
    expect([response.status, response.headers.get('ce-id')]).toEqual([200, 'r-1']);
  });
});

describe('the trace of an invocation', () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  it.each([['traceparent'], ['ce-traceparent']])('is continued from %s', async (name) => {
    let traceId: string | undefined;
    const { app } = given(async () => {
      traceId = currentContext().trace?.traceId;
      return done;
    });
    await app.request('/', { ...post, headers: { ...headers, [name]: traceparent } });
    expect(traceId).toBe('4bf92f3577b34da6a3ce929d0e0e4736');
  });
});
