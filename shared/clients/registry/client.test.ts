import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import { type RegistryClient, createRegistryClient } from '#shared/clients/registry/client.ts';
import { selectPlatform } from '#shared/clients/registry/manifest.ts';
import { createRegistryPace } from '#shared/clients/registry/refusal.ts';
import { type Reference, parseReference, pinReference } from '#shared/clients/registry/reference.ts';
import type { SessionOptions } from '#shared/clients/registry/session.ts';
import { chooseTag } from '#shared/clients/registry/tags.ts';
import { type PushTarget, pushDisk, pushIndex, sha256 } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';

const http = createHttpClient({ isRefused: () => false, idleMs: 20_000 });
afterAll(() => http.close());

const clientOf = (host: string, options: Partial<SessionOptions> = {}) =>
  createRegistryClient({ http, host, plainHttp: true, pace: createRegistryPace(Date.now), ...options });

const read = async (body: AsyncIterable<Buffer>): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
};

describe.skipIf(!hasRegistry())('against a real registry', () => {
  let registry: TestRegistry;
  let target: PushTarget;
  beforeAll(async () => {
    registry = await startRegistry();
    target = { host: registry.host, repository: 'disks/fedora' };
  });
  afterEach(() => {
    registry.requests.length = 0;
  });
  afterAll(() => registry.close());

  const image = (rest: string) => parseReference(`docker://${registry.host}/disks/fedora${rest}`);

  it('gets a digest with one HEAD', async () => {
    const pushed = await pushDisk(target, Buffer.alloc(4096, 1), '40');
    registry.requests.length = 0;
    const head = await clientOf(registry.host).head(image(':40'));
    expect(head).toEqual({ digest: pushed.digest, mediaType: pushed.mediaType });
    expect(registry.requests.map(({ method }) => method)).toEqual(['HEAD']);
  });

  it('reads a manifest by tag and by digest, and a blob from the middle', async () => {
    const pushed = await pushDisk(target, Buffer.alloc(4096, 2), '41', 'none');
    const client = clientOf(registry.host);
    const manifest = await client.manifest(image(`@${pushed.digest}`));
    expect(manifest).toEqual(await client.manifest(image(':41')));
    const layer = pushed.layers[0]!;
    const response = await client.blob(image(':41'), layer.digest, layer.size - 10);
    expect(response.status).toBe(206);
    expect((await read(response.body)).length).toBe(10);
    const whole = await client.blob(image(':41'), layer.digest, 0);
    expect(sha256(await read(whole.body))).toBe(layer.digest);
  });

  it('selects the platform of an index, skips its attestations, and lists the others when none matches', async () => {
    const amd = await pushDisk(target, Buffer.alloc(4096, 3), 'amd');
    const arm = await pushDisk(target, Buffer.alloc(4096, 4), 'arm');
    await pushIndex(
      target,
      [
        { architecture: 'amd64', image: amd },
        { architecture: 'arm64', image: arm },
      ],
      'multi',
    );
    const manifest = await clientOf(registry.host).manifest(image(':multi'));
    if (manifest.is !== 'index') throw new Error('an index was pushed');
    expect(selectPlatform(manifest.entries, 'arm64', 'x').digest).toBe(arm.digest);
    expect(() => selectPlatform(manifest.entries, 's390x', 'x')).toThrow('it has linux/amd64, linux/arm64');
  });

  it('reads every page of the tags', async () => {
    const many = { ...target, repository: 'disks/many' };
    const tags = Array.from({ length: 7 }, (_, index) => `v1.${index}`);
    for (const tag of tags) await pushDisk(many, Buffer.alloc(512, 1), tag);
    registry.intercept = ({ path }, response) => {
      // The registry returns everything at once unless a page size is requested: set it on behalf of the client.
      if (!path.endsWith('/tags/list')) return false;
      response.writeHead(200, { link: '</v2/disks/many/tags/list?n=3&last=v1.2>; rel="next"' });
      response.end(JSON.stringify({ tags: ['v1.0', 'v1.1', 'v1.2'] }));
      return true;
    };
    const found = await clientOf(registry.host).tags(parseReference(`docker://${registry.host}/disks/many`));
    registry.intercept = undefined;
    expect(new Set(found)).toEqual(new Set(tags));
    expect(chooseTag(found, '*')?.tag).toBe('v1.6');
  });

  it('reports what is missing with the message of the registry', async () => {
    await expect(clientOf(registry.host).head(image(':none'))).rejects.toMatchObject({ code: 'ImageNotFound' });
    await expect(clientOf(registry.host).manifest(image(':none'))).rejects.toThrow(/MANIFEST_UNKNOWN/);
  });

  it('falls back to the manifest when HEAD returns no digest', async () => {
    const pushed = await pushDisk(target, Buffer.alloc(4096, 5), 'plain');
    registry.intercept = ({ method }, response) => {
      if (method !== 'HEAD') return false;
      response.writeHead(200).end();
      return true;
    };
    const head = await clientOf(registry.host).head(image(':plain'));
    registry.intercept = undefined;
    expect(head.digest).toBe(pushed.digest);
  });

  it('rejects a manifest that is not the requested one', async () => {
    const digest = sha256(Buffer.from('something else'));
    const pushed = await pushDisk(target, Buffer.alloc(4096, 6), 'swap');
    registry.intercept = ({ path }, response) => {
      if (!path.endsWith(digest)) return false;
      response.writeHead(200, { 'docker-content-digest': digest }).end(JSON.stringify({ schemaVersion: 2, ...pushed }));
      return true;
    };
    const asked = clientOf(registry.host).manifest(parseReference(pinReference(image(''), digest)));
    await expect(asked).rejects.toMatchObject({ code: 'DigestMismatch' });
    registry.intercept = undefined;
  });

  it('sends no request to a host before the time it asked for', async () => {
    let now = 0;
    const pace = createRegistryPace(() => now);
    registry.intercept = (_, response) => {
      response.writeHead(429, { 'retry-after': '120' }).end();
      return true;
    };
    const client = clientOf(registry.host, { pace });
    await expect(client.head(image(':40'))).rejects.toMatchObject({ code: 'RateLimited', retryAfterSeconds: 120 });
    registry.intercept = undefined;
    now = 119_000;
    await expect(clientOf(registry.host, { pace }).head(image(':40'))).rejects.toMatchObject({ retryAfterSeconds: 1 });
    expect(registry.requests.length).toBe(1);
    now = 120_000;
    await expect(client.head(image(':40'))).resolves.toBeDefined();
  });

  it('stops before the last request of a rate limit is used', async () => {
    const pace = createRegistryPace(() => 0);
    registry.intercept = (_, response) => {
      response
        .writeHead(200, { 'ratelimit-remaining': '0;w=600', 'docker-content-digest': sha256(Buffer.from('x')) })
        .end();
      return true;
    };
    await clientOf(registry.host, { pace }).head(image(':40'));
    registry.intercept = undefined;
    expect(pace.waitSeconds(registry.host)).toBe(600);
  });
});

describe.skipIf(!hasRegistry())('with a real registry that requires authentication', () => {
  let registry: TestRegistry;
  const credentials = { username: 'tester', password: 's3cret-pass' };
  beforeAll(async () => {
    registry = await startRegistry({ withLogin: true });
    const authorization = `Basic ${Buffer.from('tester:s3cret-pass').toString('base64')}`;
    await pushDisk({ host: registry.host, repository: 'private', authorization }, Buffer.alloc(512, 1), '1');
  });
  afterAll(() => registry.close());

  it('authenticates when it is requested to', async () => {
    const image = parseReference(`docker://${registry.host}/private:1`);
    await expect(clientOf(registry.host, { credentials }).head(image)).resolves.toBeDefined();
    await expect(clientOf(registry.host).manifest(image)).rejects.toThrow(
      'name a Secret with credentials in secretRef',
    );
    const wrong = clientOf(registry.host, { credentials: { ...credentials, password: 'wrong' } }).manifest(image);
    await expect(wrong).rejects.toMatchObject({ code: 'Unauthorized' });
    await expect(wrong).rejects.not.toThrow('wrong');
  });
});

interface Hit {
  readonly url: string;
  readonly authorization: string | undefined;
}

const listen = async (
  answer: (hit: Hit) => { status: number; headers?: Record<string, string>; body?: string },
): Promise<{ readonly host: string; readonly hits: Hit[]; readonly server: Server }> => {
  const hits: Hit[] = [];
  const server = createServer((request, response) => {
    const hit = { url: request.url ?? '', authorization: request.headers.authorization };
    hits.push(hit);
    const { status, headers = {}, body = '' } = answer(hit);
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, hits, server };
};

describe('with a separate token service', () => {
  const servers: Server[] = [];
  const start = async (answer: Parameters<typeof listen>[0]) => {
    const started = await listen(answer);
    servers.push(started.server);
    return started;
  };
  afterAll(() => {
    for (const server of servers) server.close();
  });
  const credentials = { username: 'robot', password: 'hidden' };
  const digest = sha256(Buffer.from('manifest'));

  const asks = {
    token: (client: RegistryClient, image: Reference) => client.head(image),
    tags: (client: RegistryClient, image: Reference) => client.tags(image),
    manifest: (client: RegistryClient, image: Reference) => client.manifest(image),
    blob: (client: RegistryClient, image: Reference) => client.blob(image, digest, 0),
  };
  const refusals = Object.keys(asks).flatMap((what) =>
    [429, 503].flatMap((status) => [undefined, 90].map((seconds) => ({ what, status, seconds }))),
  );

  it.each(refusals)(
    'sends no request after a response that asks for a delay: %o',
    async ({ what, status, seconds }) => {
      const headers: Record<string, string> = seconds === undefined ? {} : { 'retry-after': String(seconds) };
      const tokens = await start(() => ({ status, headers }));
      const challenge = { 'www-authenticate': `Bearer realm="http://${tokens.host}/token"` };
      const registry = await start(() =>
        what === 'token' ? { status: 401, headers: challenge } : { status, headers },
      );
      const pace = createRegistryPace(() => 0);
      const asked = asks[what as keyof typeof asks](
        clientOf(registry.host, { pace }),
        parseReference(`docker://${registry.host}/team/disk:1`),
      );
      const wait = seconds ?? (status === 429 ? 60 : undefined);
      await expect(asked).rejects.toMatchObject({ code: 'RateLimited', retryAfterSeconds: wait });
      expect(pace.waitSeconds(registry.host)).toBe(wait ?? 0);
    },
  );

  it('gets one token for all requests of a repository, with the scope pull only', async () => {
    const tokens = await start(() => ({ status: 200, body: JSON.stringify({ access_token: 'abc' }) }));
    const registry = await start(({ authorization }) =>
      authorization === 'Bearer abc'
        ? { status: 200, headers: { 'docker-content-digest': digest } }
        : {
            status: 401,
            headers: {
              'www-authenticate': `Bearer realm="http://${tokens.host}/token",service="s",scope="repository:other:pull,push"`,
            },
          },
    );
    const client = clientOf(registry.host, { credentials });
    const image = parseReference(`docker://${registry.host}/team/disk:1`);
    await client.head(image);
    await client.head(image);
    expect(tokens.hits).toEqual([
      {
        url: '/token?scope=repository%3Ateam%2Fdisk%3Apull&service=s',
        authorization: expect.stringMatching(/^Basic /),
      },
    ]);
    expect(registry.hits.length).toBe(3);
  });

  it('does not send credentials without TLS when the registry itself uses it', async () => {
    const tokens = await start(() => ({ status: 200, body: '{"token":"abc"}' }));
    const answer = {
      status: 401,
      headers: { 'www-authenticate': `Bearer realm="http://${tokens.host}/token"` },
      body: (async function* nothing() {})() as AsyncIterable<Buffer>,
      pour: () => Promise.resolve(),
      discard: () => {},
    };
    const tls = { get: () => Promise.resolve(answer), close: () => Promise.resolve() };
    const client = clientOf('registry.example', { credentials, plainHttp: false, http: tls });
    await expect(client.head(parseReference('docker://registry.example/a/b'))).rejects.toThrow('without TLS');
    expect(tokens.hits).toEqual([]);
  });

  it.each([
    [['store.example:5000'], 'bytes'],
    [['store.example'], 'RedirectRefused'],
    [undefined, 'RedirectRefused'],
  ])('follows a blob from https to plain http only where the host is allowed: %j', async (plainHosts, expected) => {
    const over: HttpClient = {
      get: ({ url }) => {
        const isStore = url.href.startsWith('http://store.example:5000/');
        const headers: Record<string, string> = isStore ? {} : { location: 'http://store.example:5000/blob' };
        const body = Readable.from(isStore ? [Buffer.from('bytes')] : []) as AsyncIterable<Buffer>;
        return Promise.resolve({
          status: isStore ? 200 : 307,
          headers,
          body,
          pour: () => Promise.resolve(),
          discard: () => {},
        });
      },
      close: () => Promise.resolve(),
    };
    const client = clientOf('registry.example', { plainHttp: false, http: over, plainHosts });
    const image = parseReference('docker://registry.example/team/disk:1');
    const result = await client.blob(image, digest, 0).then(
      async ({ body }) => (await read(body)).toString(),
      (error: { readonly code: string }) => error.code,
    );
    expect(result).toBe(expected);
  });

  const query = 'X-Amz-Date=20200101T000000Z&X-Amz-Expires=60&X-Amz-Signature=s3cret';
  it.each([
    ['application/xml', '<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>'],
    ['text/plain', `Request has expired: /blob?${query}`],
    ['text/html', `<title>Request has expired</title><p>/blob?${query}`],
  ])('reports the expiry of the address that a blob is redirected to, and its store: %s', async (type, body) => {
    const store = await start(() => ({ status: 403, headers: { 'content-type': type }, body }));
    const registry = await start(() => ({ status: 307, headers: { location: `http://${store.host}/blob?${query}` } }));
    const image = parseReference(`docker://${registry.host}/team/disk:1`);
    const fault: unknown = await clientOf(registry.host, { credentials })
      .blob(image, digest, 0)
      .catch((error: unknown) => error);
    // The registry signs another address for the next request.
    expect(fault).toMatchObject({ code: 'RegistryFailed', retryable: true });
    expect(String(fault)).toContain(
      `${registry.host} redirects to ${store.host}, which answered 403 for blob ${digest}`,
    );
    expect(String(fault)).toMatch(
      /\([^?]*Request has expired[^?]*\): the signed address expired at 2020-01-01T00:01:00/,
    );
    expect(String(fault)).not.toMatch(/X-Amz|s3cret|Secret/);
  });

  it.each([
    [403, 'Unauthorized', false],
    [401, 'Unauthorized', false],
    [404, 'ImageNotFound', false],
    [416, 'RegistryFailed', true],
    [500, 'RegistryFailed', true],
    [503, 'RateLimited', true],
    [429, 'RateLimited', true],
  ])(
    'does not blame the Secret for the %i of the store that a blob is redirected to',
    async (status, code, retryable) => {
      const tokens = await start(() => ({ status: 200, body: '{"token":"abc"}' }));
      const headers = { 'www-authenticate': `Bearer realm="http://${tokens.host}/token"` };
      const store = await start(() => ({ status, headers, body: 'no' }));
      const registry = await start(() => ({ status: 307, headers: { location: `http://${store.host}/blob` } }));
      const image = parseReference(`docker://${registry.host}/team/disk:1`);
      const asked = clientOf(registry.host, { credentials }).blob(image, digest, 0);
      await expect(asked).rejects.toMatchObject({
        code,
        retryable,
        message: expect.stringMatching(/redirects to .* answered \d+ for blob(?!.*Secret)/),
      });
      expect(tokens.hits).toEqual([]);
    },
  );

  it('does not send its credentials to the store that a blob is redirected to', async () => {
    const store = await start(() => ({ status: 200, body: 'bytes' }));
    const registry = await start(({ authorization }) =>
      authorization === undefined
        ? { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } }
        : { status: 307, headers: { location: `http://${store.host}/signed?key=1` } },
    );
    const image = parseReference(`docker://${registry.host}/team/disk:1`);
    const response = await clientOf(registry.host, { credentials }).blob(image, digest, 0);
    expect((await read(response.body)).toString()).toBe('bytes');
    expect(store.hits).toEqual([{ url: '/signed?key=1', authorization: undefined }]);
  });
});
