import { getEventListeners } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import { followRedirects, toDestination } from '#shared/clients/http/redirect.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

const open = async (respond: Parameters<typeof startOrigin>[0]): Promise<Origin> => {
  const origin = await startOrigin(respond);
  closing.push(() => origin.close());
  return origin;
};

const client = (allowed: readonly string[] = ['127.0.0.0/8'], idleMs = 2000): HttpClient => {
  const made = createHttpClient({ isRefused: createAddressPolicy(allowed), idleMs });
  closing.push(() => made.close());
  return made;
};

const collect = async (body: AsyncIterable<Buffer>): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
};

describe('the raw HTTP client', () => {
  it('returns the bytes as published, whatever the content encoding', async () => {
    const packed = gzipSync('hello');
    const origin = await open(() => ({ headers: { 'content-encoding': 'gzip' }, body: packed }));
    const response = await client().get({ url: new URL(origin.url) });
    expect(await collect(response.body)).toEqual(packed);
    expect(origin.requests[0]?.headers['accept-encoding']).toBe('identity');
  });

  it('joins chunks of a byte, so that a reader may keep what it was given', async () => {
    const length = 200_000;
    const origin = createServer(({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      for (let sent = 0; sent < length; sent += 1000)
        socket.write(Array.from({ length: 1000 }, (_, at) => `1\r\n${(sent + at) % 7}\r\n`).join(''));
      socket.write('0\r\n\r\n');
    });
    await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
    closing.push(async () => void origin.close());
    const url = new URL(`http://127.0.0.1:${(origin.address() as AddressInfo).port}/`);
    const parts = await Array.fromAsync((await client().get({ url })).body);
    expect(String(Buffer.concat(parts))).toBe(Array.from({ length }, (_, at) => at % 7).join(''));
    expect(parts.length).toBeLessThan(length / 100);
  });

  it.each([
    'http://127.0.0.1:PORT/',
    'http://localhost:PORT/',
    'http://0x7f.1:PORT/',
    'http://[::ffff:127.0.0.1]:PORT/',
  ])('does not connect to %s when loopback is not allowed', async (address) => {
    const origin = await open(() => ({ body: Buffer.from('secret') }));
    const url = new URL(address.replace('PORT', String(origin.port)));
    await expect(client([]).get({ url })).rejects.toMatchObject({ code: 'AddressRefused', retryable: false });
    expect(origin.requests).toHaveLength(0);
  });

  it('connects only to the allowed addresses of a name', async () => {
    const origin = await open(() => ({ body: Buffer.from('ok') }));
    const response = await client().get({ url: new URL(`http://localhost:${origin.port}/`) });
    expect((await collect(response.body)).toString()).toBe('ok');
  });

  it('reports Unreachable when no server listens', async () => {
    const origin = await startOrigin(() => ({}));
    await origin.close();
    await expect(client().get({ url: new URL(origin.url) })).rejects.toMatchObject({ code: 'Unreachable' });
  });

  it('reports Stalled when the server stops sending', async () => {
    const origin = await open(() => ({
      headers: { 'content-length': 1000 },
      body: Buffer.alloc(1000),
      stallAfter: 10,
    }));
    const response = await client(['127.0.0.1'], 150).get({ url: new URL(origin.url) });
    await expect(collect(response.body)).rejects.toMatchObject({ code: 'Stalled', retryable: true });
  });

  describe('streams', () => {
    const poured = async (http: HttpClient, url: string, most = Infinity, signal?: AbortSignal): Promise<Buffer> => {
      const parts: Buffer[] = [];
      let length = 0;
      const response = await http.get({ url: new URL(url), ...(signal === undefined ? {} : { signal }) });
      await response.pour((chunk) => {
        length += chunk.length;
        if (length > most) throw new Error('too much');
        parts.push(Buffer.from(chunk));
      });
      return Buffer.concat(parts);
    };

    it('the whole body, however late it is read', async () => {
      const body = Buffer.alloc(4 * 1024 * 1024, 'bytes');
      const origin = await open((request) => fileAnswer(request, body));
      const response = await client(['127.0.0.1'], 1_000).get({ url: new URL(origin.url) });
      await new Promise((resolve) => setTimeout(resolve, 1_300));
      const parts: Buffer[] = [];
      await response.pour((chunk) => void parts.push(Buffer.from(chunk)));
      expect(Buffer.concat(parts).equals(body)).toBe(true);
    });

    it('an empty body', async () => {
      const origin = await open(() => ({ body: Buffer.alloc(0) }));
      expect(await poured(client(), origin.url)).toEqual(Buffer.alloc(0));
    });

    it('until its consumer returns, and rethrows its error', async () => {
      const origin = await open((request) => fileAnswer(request, Buffer.alloc(4 * 1024 * 1024)));
      await expect(poured(client(), origin.url, 100_000)).rejects.toThrow('too much');
    });

    it('until the server stalls, cuts the connection, or the caller aborts', async () => {
      const silent = { headers: { 'content-length': 1000 }, body: Buffer.alloc(1000), stallAfter: 10 };
      const origin = await open(() => silent);
      await expect(poured(client(['127.0.0.1'], 150), origin.url)).rejects.toMatchObject({ code: 'Stalled' });
      const cut = await open(() => ({ headers: { 'content-length': 1000 }, body: Buffer.alloc(1000), cutAfter: 10 }));
      await expect(poured(client(), cut.url)).rejects.toMatchObject({ code: 'Interrupted' });
      const signal = AbortSignal.timeout(100);
      await expect(poured(client(), origin.url, Infinity, signal)).rejects.toMatchObject({ name: 'TimeoutError' });
    });
  });

  it('never reports Stalled because of a slow reader', async () => {
    const body = Buffer.alloc(4 * 1024 * 1024, 7);
    const origin = await open((request) => fileAnswer(request, body));
    const response = await client(['127.0.0.1'], 1_000).get({ url: new URL(origin.url) });
    let received = 0;
    for await (const chunk of response.body) {
      if (received === 0) await new Promise((resolve) => setTimeout(resolve, 1_300));
      received += chunk.length;
    }
    expect(received).toBe(body.length);
  });

  it('reports Interrupted when the connection is cut', async () => {
    const origin = await open(() => ({ headers: { 'content-length': 1000 }, body: Buffer.alloc(1000), cutAfter: 10 }));
    const response = await client().get({ url: new URL(origin.url) });
    await expect(collect(response.body)).rejects.toMatchObject({ code: 'Interrupted', retryable: true });
  });

  it('throws the reason of its signal', async () => {
    const origin = await open(() => ({
      headers: { 'content-length': 1000 },
      body: Buffer.alloc(1000),
      stallAfter: 10,
    }));
    const controller = new AbortController();
    const response = await client().get({ url: new URL(origin.url), signal: controller.signal });
    setTimeout(() => controller.abort(new Error('enough')), 50);
    await expect(collect(response.body)).rejects.toThrow('enough');
  });

  it('leaves no listener on a long-lived signal, however an exchange ends', async () => {
    const body = Buffer.alloc(1024 * 1024);
    const origin = await open((request) =>
      request.path === '/cut'
        ? { headers: { 'content-length': 1000 }, body: Buffer.alloc(1000), cutAfter: 10 }
        : fileAnswer(request, body),
    );
    const { signal } = new AbortController();
    const http = client();
    const get = (path: string) => http.get({ url: new URL(path, origin.url), signal });
    expect((await collect((await get('/whole')).body)).length).toBe(body.length);
    await (await get('/poured')).pour(() => {});
    (await get('/discarded')).discard();
    for await (const _ of (await get('/left')).body) break;
    await expect(get('/cut').then((response) => collect(response.body))).rejects.toThrow('broke');
    await origin.close();
    await expect(get('/nobody')).rejects.toMatchObject({ code: 'Unreachable' });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('redirects', () => {
  const follow = (url: string, headers: Record<string, string> = {}, allowed?: readonly string[]) =>
    followRedirects(client(allowed), { origin: toDestination(new URL(url), headers), headers: {} });

  it('send secret headers only to their own origin', async () => {
    const other = await open(() => ({ body: Buffer.from('there') }));
    const origin = await open(({ path }) => ({
      status: 302,
      headers: { location: path === '/a' ? '/b' : `${other.url}/c` },
    }));
    const { response, final } = await follow(`${origin.url}/a`, { authorization: 'Bearer s3cret', 'x-token': 't' });
    expect((await collect(response.body)).toString()).toBe('there');
    expect(final.url.href).toBe(`${other.url}/c`);
    expect(origin.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer s3cret', 'Bearer s3cret']);
    expect(other.requests[0]?.headers).not.toHaveProperty('authorization');
    expect(other.requests[0]?.headers).not.toHaveProperty('x-token');
  });

  it('turn user info into basic authorization for that origin', async () => {
    const other = await open(() => ({ body: Buffer.from('there') }));
    const origin = await open(() => ({ status: 307, headers: { location: other.url } }));
    await follow(`http://us%40er:p%3Ass@127.0.0.1:${origin.port}/`);
    expect(origin.requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from('us@er:p:ss').toString('base64')}`);
    expect(other.requests[0]?.headers).not.toHaveProperty('authorization');
  });

  it.each([
    ['without end', '/again'],
    ['to a file', 'file:///etc/passwd'],
    ['to nowhere', undefined],
    ['to nonsense', 'http://['],
  ])('are rejected %s', async (_, location) => {
    const origin = await open(() => ({ status: 302, headers: location === undefined ? {} : { location } }));
    await expect(follow(origin.url)).rejects.toMatchObject({ code: 'RedirectRefused', retryable: false });
    expect(origin.requests.length).toBeLessThanOrEqual(11);
  });

  it('to a rejected address are rejected', async () => {
    const origin = await open(() => ({
      status: 301,
      headers: { location: 'http://169.254.169.254/latest/meta-data' },
    }));
    await expect(follow(origin.url)).rejects.toMatchObject({ code: 'AddressRefused' });
  });
});

describe('a slow server', () => {
  const trickle = async (everyMs: number, size: number) => {
    const timers: NodeJS.Timeout[] = [];
    const server = createServer((_, response) => {
      response.writeHead(200);
      timers.push(setInterval(() => response.write(Buffer.alloc(size)), everyMs));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return {
      url,
      close: () => {
        timers.forEach(clearInterval);
        server.closeAllConnections();
        server.close();
      },
    };
  };
  const floor = { bytes: 1000, windowMs: 400 };
  const idle = { isRefused: () => false, idleMs: 5000, floor };

  it.each(['body', 'pour'] as const)('has stalled below the minimum rate, read as %s', async (how) => {
    const { url, close } = await trickle(50, 1);
    const slow = createHttpClient(idle);
    const response = await slow.get({ url });
    const all = how === 'pour' ? response.pour(() => {}) : drain(response.body);
    await expect(all).rejects.toMatchObject({
      code: 'Stalled',
      message: expect.stringMatching(/sent \d+ bytes in \d+ seconds: at least 1000/),
    });
    await slow.close();
    close();
  });

  it.each(['body', 'pour'] as const)('is read on above the minimum rate, as %s', async (how) => {
    const { url, close } = await trickle(20, 200);
    const client = createHttpClient(idle);
    const response = await client.get({ url });
    let bytes = 0;
    const enough = new Error('enough');
    const count = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > 10_000) throw enough;
    };
    const each = async (): Promise<void> => {
      for await (const chunk of response.body) count(chunk);
    };
    await expect(how === 'pour' ? response.pour(count) : each()).rejects.toBe(enough);
    await client.close();
    close();
  });

  it('is not considered stalled because of a slow reader', async () => {
    const { url, close } = await trickle(20, 200);
    const client = createHttpClient(idle);
    const response = await client.get({ url });
    let reads = 0;
    for await (const chunk of response.body) {
      expect(chunk.length).toBeGreaterThan(0);
      reads += 1;
      if (reads === 4) break;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    expect(reads).toBe(4);
    await client.close();
    close();
  });
});

const drain = async (body: AsyncIterable<Buffer>): Promise<void> => {
  for await (const chunk of body) void chunk;
};
