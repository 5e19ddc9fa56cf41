import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuthority, issueServer } from '#shared/certificate/issue.ts';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import { Proxies, proxyFor } from '#shared/clients/http/proxy.ts';
import { startForwardProxy } from '#test/support/forward-proxy.ts';
import { startOrigin } from '#test/support/origin.ts';

const proxies: Proxies = { http: 'http://proxy:3128', https: 'http://tls-proxy:3128', none: [] };

describe('the proxy of a URL', () => {
  it.each<[string, readonly string[], string | undefined]>([
    ['http://images.example/x', [], proxies.http],
    ['https://images.example/x', [], proxies.https],
    ['http://images.example/x', ['*'], undefined],
    ['http://images.example/x', ['images.example'], undefined],
    ['http://cdn.images.example/x', ['images.example'], undefined],
    ['http://cdn.images.example/x', ['.images.example'], undefined],
    ['http://cdn.images.example/x', ['*.images.example'], undefined],
    ['http://images.example/x', ['.images.example'], proxies.http],
    ['http://otherimages.example/x', ['images.example'], proxies.http],
    ['http://Images.EXAMPLE/x', [' images.Example '], undefined],
    ['http://images.example:8080/x', ['images.example:8080'], undefined],
    ['http://images.example/x', ['images.example:8080'], proxies.http],
    ['https://images.example/x', ['images.example:443'], undefined],
    ['http://10.1.2.3/x', ['10.0.0.0/8'], undefined],
    ['http://11.1.2.3/x', ['10.0.0.0/8', '11.1.2.4'], proxies.http],
    ['http://11.1.2.4/x', ['11.1.2.4'], undefined],
    ['http://[2001:db8::7]/x', ['2001:db8::/32'], undefined],
    ['http://[2001:db8::7]:81/x', ['[2001:db8::7]:81'], undefined],
    ['http://[2001:db8::7]/x', ['10.0.0.0/8', '2001:db8::/129'], proxies.http],
    ['http://minio.store.svc:9000/x', [], undefined],
    ['http://minio.store.svc.cluster.local/x', [], undefined],
    ['http://minio/x', [], undefined],
    ['http://localhost:5000/x', [], undefined],
    ['http://127.0.0.1:5000/x', [], undefined],
    ['http://[::1]:5000/x', [], undefined],
  ])('%s, except %j: %s', (url, none, expected) => {
    expect(proxyFor(new URL(url), { ...proxies, none: [...none] })).toBe(expected);
  });

  it('is unset when none is configured for its scheme', () => {
    expect(proxyFor(new URL('http://images.example/x'), { https: 'http://p', none: [] })).toBe(undefined);
    expect(proxyFor(new URL('http://images.example/x'), undefined)).toBe(undefined);
  });

  it('rejects user info, which Jobs would expose', () => {
    expect(Proxies.safeParse({ http: 'http://user:word@proxy:3128' }).error?.issues[0]?.message).toContain(
      'must not contain a user',
    );
    expect(Proxies.safeParse({ http: 'socks5://proxy:3128' }).success).toBe(false);
  });
});

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});
const keep = <T extends { close(): Promise<unknown> }>(opened: T): T => {
  closing.push(() => opened.close());
  return opened;
};

const client = (use: Partial<Proxies>): HttpClient =>
  keep(createHttpClient({ isRefused: createAddressPolicy([]), idleMs: 10_000, proxies: { none: [], ...use } }));

const read = async (http: HttpClient, url: string): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of (await http.get({ url: new URL(url) })).body) parts.push(part);
  return Buffer.concat(parts).toString();
};

describe('requests through a proxy', () => {
  it('reach names that only the proxy resolves, in plain HTTP', async () => {
    const origin = keep(await startOrigin(({ path }) => ({ body: Buffer.from(`at ${path}`) })));
    const proxy = keep(await startForwardProxy({ ports: { 'images.example:80': origin.port } }));
    expect(await read(client({ http: proxy.url }), 'http://images.example/a%2Fb?c=d')).toBe('at /a%2Fb?c=d');
    expect(proxy.requests).toEqual(['GET http://images.example/a%2Fb?c=d']);
    expect(origin.requests[0]?.headers.host).toBe('images.example');
  });

  it('are tunnelled with TLS, whose authority must be trusted', async () => {
    const validity = { from: new Date(Date.now() - 60_000), to: new Date(Date.now() + 3_600_000) };
    const authority = createAuthority('proxies', validity);
    const { certificate, key } = issueServer(authority, ['images.example'], validity);
    const server = createServer({ cert: certificate, key }, (_, response) => response.end('over TLS'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    const { port } = server.address() as AddressInfo;
    const proxy = keep(await startForwardProxy({ ports: { 'images.example:443': port } }));
    const trusting = client({ https: proxy.url, ca: authority.certificate });
    expect(await read(trusting, 'https://images.example/x')).toBe('over TLS');
    expect(proxy.requests).toEqual(['CONNECT images.example:443']);
    await expect(read(client({ https: proxy.url }), 'https://images.example/x')).rejects.toMatchObject({
      code: 'CertificateRefused',
    });
  });

  it('that it rejects fail finally, with a message that an operator can act on', async () => {
    const proxy = keep(await startForwardProxy({ ports: {} }));
    const refused = read(client({ https: proxy.url }), 'https://images.example/x');
    await expect(refused).rejects.toMatchObject({ code: 'ProxyRefused', retryable: false });
    await expect(refused).rejects.toThrow(/the proxy 127\.0\.0\.1:\d+ answered 403 .*images\.example.*NO_PROXY/);
  });

  it('to a proxy that requires authentication fail finally', async () => {
    const proxy = keep(await startOrigin(() => ({ status: 407 })));
    await expect(read(client({ http: proxy.url }), 'http://images.example/x')).rejects.toMatchObject({
      code: 'ProxyRefused',
      message: expect.stringContaining('answered 407') as string,
    });
  });

  it('name the proxy that does not answer', async () => {
    const proxy = await startForwardProxy({ ports: {} });
    await proxy.close();
    await expect(read(client({ http: proxy.url }), 'http://images.example/x')).rejects.toMatchObject({
      code: 'Unreachable',
      message: expect.stringContaining(`through the proxy ${new URL(proxy.url).host}`) as string,
    });
  });

  it('do not reach rejected addresses', async () => {
    const proxy = keep(await startForwardProxy({ ports: {} }));
    await expect(read(client({ http: proxy.url }), 'http://169.254.169.254/latest')).rejects.toMatchObject({
      code: 'AddressRefused',
    });
    expect(proxy.requests).toEqual([]);
  });
});
