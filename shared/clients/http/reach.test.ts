// Which URLs and addresses are within reach, in every notation that could lead elsewhere.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHttpClient } from '#shared/clients/http/client.ts';
import { type ServerPlace, type ServerReach, extendReach, whyOutOfReach } from '#shared/clients/http/reach.ts';
import { followRedirects } from '#shared/clients/http/redirect.ts';

const allowing = (...places: readonly ServerPlace[]): ServerReach => ({
  allowed: [{ places: [...places], because: 'not allowed' }],
  denied: [],
});
const denying = (place: ServerPlace): ServerReach => ({ allowed: [], denied: [{ place, because: 'denied' }] });
const bucket = { host: 'store.example', path: '/images/' };

describe('places that are allowed', () => {
  it.each<[url: string, place: ServerPlace, isAllowed: boolean]>([
    ['https://images.example/a', { host: 'images.example' }, true],
    ['https://IMAGES.example./a', { host: 'images.example' }, true],
    ['https://images.example:8443/a', { host: 'images.example' }, true],
    ['https://images.example:8443/a', { host: 'images.example:443' }, false],
    ['https://images.example/a', { host: 'images.example:443' }, true],
    ['https://images.example.evil.test/a', { host: 'images.example' }, false],
    ['https://images.example@evil.test/a', { host: 'images.example' }, false],
    ['https://a.images.example/a', { host: '*.images.example' }, true],
    ['https://images.example/a', { host: '*.images.example' }, false],
    ['https://evilimages.example/a', { host: '*.images.example' }, false],
    ['https://anything.test/', { host: '*' }, true],
    // Other notations of an address are those of the URL parser.
    ['http://0x0a000005/a', { host: '10.0.0.5' }, true],
    ['http://10.0.0.6/a', { host: '10.0.0.5' }, false],
    ['http://[fd00::1]:8080/a', { host: '[fd00::1]:8080' }, true],
    ['http://[fd00::1]/a', { host: 'fd00::1' }, true],
    // An alias of the name is another name.
    ['http://alias.test/a', { host: 'images.example' }, false],
    ['https://store.example/images/a.img', bucket, true],
    ['https://store.example/images', bucket, true],
    ['https://store.example/imagesecret/a.img', bucket, false],
    ['https://store.example/images/../secret/a.img', bucket, false],
    ['https://store.example/images/%2e%2e/secret/a.img', bucket, false],
    ['https://store.example/images/..%2fsecret/a.img', bucket, false],
    ['https://store.example/images%2f..%2fsecret/a.img', bucket, false],
    [String.raw`https://store.example/images/..\secret/a.img`, bucket, false],
  ])('%s by %o: %s', (url, place, isAllowed) => {
    expect(whyOutOfReach(allowing(place), new URL(url))).toBe(isAllowed ? undefined : 'not allowed');
  });

  it('are those of every list', () => {
    const [a, b] = [{ host: 'a.test' }, { host: 'b.test' }];
    const reach: ServerReach = {
      denied: [],
      allowed: [
        { places: [a, b], because: 'one' },
        { places: [b], because: 'other' },
      ],
    };
    expect(whyOutOfReach(reach, new URL('https://b.test/'))).toBeUndefined();
    expect(whyOutOfReach(reach, new URL('https://a.test/'))).toBe('other');
    expect(
      whyOutOfReach(extendReach(reach, ['Mirror.test:5000'])!, new URL('http://mirror.test:5000/')),
    ).toBeUndefined();
  });
});

describe('places that are denied', () => {
  it.each<[url: string, place: ServerPlace, isDenied: boolean]>([
    ['https://evil.test/a', { host: 'evil.test' }, true],
    ['https://EVIL.test.:444/a', { host: 'evil.test' }, true],
    ['https://good.test/a', { host: 'evil.test' }, false],
    ['https://store.example/images/a', bucket, true],
    ['https://store.example//images/a', bucket, true],
    ['https://store.example/other/../images/a', bucket, true],
    // What a server makes of it is not known.
    ['https://store.example/%69mages%2fa', bucket, true],
    ['https://store.example/%69mages/a', bucket, true],
    ['https://store.example/other/a', bucket, false],
    // One address in several notations, in the rule as in the URL.
    ['http://[2001:db8::1]/a', { host: '[2001:db8:0:0:0:0:0:1]' }, true],
    ['http://[2001:db8::1]:81/a', { host: '[2001:DB8:0::1]:81' }, true],
    ['http://[::ffff:10.0.0.5]/a', { host: '10.0.0.5' }, true],
    ['http://10.0.0.5/a', { host: '[::ffff:a00:5]' }, true],
    ['http://10.0.0.5/a', { host: '0x0a.5' }, true],
    ['http://10.0.0.6/a', { host: '[::ffff:a00:5]' }, false],
  ])('%s by %o: %s', (url, place, isDenied) => {
    expect(whyOutOfReach(denying(place), new URL(url))).toBe(isDenied ? 'denied' : undefined);
  });
});

describe('a client within reach', () => {
  const servers: Server[] = [];
  const hits: string[] = [];
  const start = async (location?: () => string): Promise<number> => {
    const server = createServer((request, response) => {
      hits.push(`${request.headers.host}`);
      if (location === undefined) response.end('bytes');
      else response.writeHead(302, { location: location() }).end();
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };
  let target = 0;
  let origin = 0;
  beforeAll(async () => {
    target = await start();
    origin = await start(() => `http://127.0.0.1:${target}/disk`);
  });
  afterAll(() => {
    for (const server of servers) server.close();
  });
  const fetchWith = async (reach: ServerReach, host = '127.0.0.1') => {
    const client = createHttpClient({ isRefused: () => false, idleMs: 5000, reach });
    hits.length = 0;
    try {
      const url = new URL(`http://${host}:${origin}/disk`);
      const { response } = await followRedirects(client, { origin: { url, headers: {} }, headers: {} });
      response.discard();
      return 'fetched';
    } catch (error) {
      return `${(error as { code: string }).code}: ${(error as Error).message}`;
    } finally {
      await client.close();
    }
  };

  it('does not follow a redirect out of it, and sends nothing there', async () => {
    const said = await fetchWith(allowing({ host: `127.0.0.1:${origin}` }));
    expect(said).toBe(`SourceNotAllowed: 127.0.0.1:${target} is not asked: not allowed`);
    expect(hits).toEqual([`127.0.0.1:${origin}`]);
    expect(await fetchWith(allowing({ host: '127.0.0.1' }))).toBe('fetched');
  });

  it('connects to no denied address, whatever its name is', async () => {
    const reach: ServerReach = { allowed: [], denied: [{ addresses: '127.0.0.0/8', because: 'internal' }] };
    expect(await fetchWith(reach, 'localhost')).toMatch(
      /^SourceNotAllowed: localhost is at .*127\.0\.0\.1.*: internal$/,
    );
    expect(await fetchWith(reach, '0x7f.1')).toMatch(/^SourceNotAllowed: 127\.0\.0\.1:\d+ is not asked: internal$/);
    expect(hits).toEqual([]);
  });
});
