import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { configMaps, persistentVolumeClaims, secrets } from '#shared/api/foreign/core.ts';
import type { CronSourceSpec } from '#shared/api/cdi/data-import-cron.ts';
import { type MirrorAccess, readMirrors } from '#shared/clients/http/mirrors.ts';
import { type RegistryAccess, readRegistriesConf } from '#shared/clients/registry/mirrors.ts';
import type { Validators } from '#shared/golden/poll/observation.ts';
import { type Observe, createObserver } from '#shared/golden/poll/observe.ts';
import { type CronSource, readCronSource } from '#shared/golden/source.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import { type PushTarget, pushDisk, pushIndex, sha256 } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';

const sourceOf = (source: CronSourceSpec): CronSource => {
  const read = readCronSource({ schedule: '', managedDataSource: 'd', source });
  if ('faults' in read) throw new Error(JSON.stringify(read.faults));
  return read.value;
};

let kube: MemoryKube;
/** Of the observer. */
let time = Date.now();
const observerOf = (
  plainRegistries: readonly string[],
  allowedAddresses: readonly string[] = ['127.0.0.0/8'],
  access: MirrorAccess = {},
): Observe =>
  createObserver({
    kube,
    allowedAddresses,
    registries: () => Promise.resolve({ plainRegistries, ...access }),
    architecture: 'amd64',
    now: () => time,
  });

beforeEach(() => {
  kube = createMemoryKube();
});

describe.skipIf(!hasRegistry())('a registry', () => {
  let registry: TestRegistry;
  let target: PushTarget;
  beforeAll(async () => {
    registry = await startRegistry({ withLogin: true });
    const authorization = `Basic ${Buffer.from('tester:s3cret-pass').toString('base64')}`;
    target = { host: registry.host, repository: 'disks/fedora', authorization };
  });
  afterEach(() => {
    registry.requests.length = 0;
  });
  afterAll(() => registry.close());

  beforeEach(() => {
    const data = { username: btoa('tester'), password: btoa('s3cret-pass') };
    kube.seed(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'golden', name: 'login' }, data });
  });

  const look = async (asked: object, known: Validators = {}) => {
    const url = `docker://${registry.host}/disks/fedora`;
    const source = sourceOf({ registry: { url, secretRef: 'login', ...asked } });
    registry.requests.length = 0;
    return observerOf([registry.host])({ source, namespace: 'golden', known });
  };
  const url = (rest: string) => ({ url: `docker://${registry.host}/disks/fedora${rest}` });
  const asked = () =>
    registry.requests.filter(({ headers }) => headers.authorization !== undefined).map(({ method }) => method);

  it('tells a new digest, then that it is the same, with one HEAD each', async () => {
    const { digest } = await pushDisk(target, Buffer.alloc(512, 1), '40');
    expect(await look(url(':40'))).toMatchObject({ is: 'found', digest, memory: { sourceDigest: digest } });
    expect(await look(url(':40'), { sourceDigest: digest })).toMatchObject({ is: 'same' });
    expect(asked()).toEqual(['HEAD']);
  });

  it('is asked once in a round, for whichever architectures', async () => {
    // One after the other: the registry loses blobs that both bring at the same moment.
    const images = [];
    for (const [index, architecture] of ['amd64', 'arm64'].entries()) {
      const image = await pushDisk(target, Buffer.alloc(512, 20 + index), `round-${architecture}`);
      images.push({ architecture, image });
    }
    await pushIndex(target, images, 'round');
    registry.requests.length = 0;
    const observe = observerOf([registry.host]);
    const round = {};
    const observations = await Promise.all(
      ['amd64', 'arm64', undefined].map((architecture) => {
        const platform = architecture === undefined ? {} : { platform: { architecture } };
        const source = sourceOf({ registry: { ...url(':round'), ...platform, secretRef: 'login' } });
        return observe({ source, namespace: 'golden', known: {}, round });
      }),
    );
    const digests = images.map(({ image }) => image.digest);
    expect(observations).toMatchObject([...digests, digests[0]].map((digest) => ({ is: 'found', digest })));
    expect(asked()).toEqual(['HEAD', 'GET']);
  });

  it('tells the digest for the platform, and reads an index anew only when it changed', async () => {
    const amd = await pushDisk(target, Buffer.alloc(512, 2), 'amd');
    const arm = await pushDisk(target, Buffer.alloc(512, 3), 'arm');
    const index = await pushIndex(
      target,
      [
        { architecture: 'amd64', image: amd },
        { architecture: 'arm64', image: arm },
      ],
      'multi',
    );
    const memory = { sourceDigest: index.digest };
    expect(await look(url(':multi'))).toMatchObject({ digest: amd.digest, memory });
    expect(await look({ ...url(':multi'), platform: { architecture: 'arm64' } })).toMatchObject({ digest: arm.digest });
    expect(await look(url(':multi'), memory)).toMatchObject({ is: 'same' });
    expect(asked()).toEqual(['HEAD']);
    const absent = await look({ ...url(':multi'), platform: { architecture: 's390x' } });
    expect(absent).toMatchObject({
      is: 'failed',
      reason: 'PlatformAbsent',
      message: expect.stringContaining('linux/arm64'),
    });
  });

  it('follows the newest tag of a range', async () => {
    await pushDisk(target, Buffer.alloc(512, 4), 'v1.9.0');
    const newest = await pushDisk(target, Buffer.alloc(512, 5), 'v1.10.0');
    await pushDisk(target, Buffer.alloc(512, 6), 'v2.0.0-rc.1');
    expect(await look({ tags: '^1' })).toMatchObject({ tag: 'v1.10.0', digest: newest.digest });
    expect(await look({ tags: '>3 <4' })).toMatchObject({ is: 'failed', reason: 'ImageNotFound' });
  });

  it('names the tags that look newer and are not followed, and why, as long as they are there', async () => {
    const mixed = { ...target, repository: 'disks/mixed' };
    const newest = await pushDisk(mixed, Buffer.alloc(512, 30), 'v9.11.0');
    for (const [index, tag] of ['v9.10.0', 'v9.12.0-rc.1', '2022.04.26'].entries())
      await pushDisk(mixed, Buffer.alloc(512, 31 + index), tag);
    const asked = { url: `docker://${registry.host}/disks/mixed`, tags: '*' };
    const says = expect.stringContaining(
      '; passed over: 2022.04.26 (dates, which are not compared with versions); v9.12.0-rc.1 (pre-releases)',
    );
    expect(await look(asked)).toMatchObject({ is: 'found', tag: 'v9.11.0', digest: newest.digest, message: says });
    expect(await look(asked, { sourceDigest: newest.digest })).toMatchObject({ is: 'same', message: says });
    expect(await look({ ...asked, tags: '<=9.10' })).toMatchObject({
      message: expect.not.stringMatching(/passed over/),
    });
    const undated = { ...target, repository: 'disks/undated' };
    await pushDisk(undated, Buffer.alloc(512, 34), 'latest');
    await pushDisk(undated, Buffer.alloc(512, 35), 'edge');
    expect(await look({ url: `docker://${registry.host}/disks/undated`, tags: undefined })).toMatchObject({
      tag: 'latest',
      message: expect.not.stringContaining('passed over'),
    });
  });

  it('asks nobody about a pinned digest', async () => {
    const digest = sha256(Buffer.from('x'));
    expect(await look(url(`@${digest}`))).toMatchObject({ is: 'found', digest });
    expect(registry.requests).toEqual([]);
  });

  it('says in the words of the registry what is wrong, and nothing of the Secret', async () => {
    expect(await look(url(':none'))).toMatchObject({ is: 'failed', reason: 'ImageNotFound' });
    const anonymous = await look({ ...url(':40'), secretRef: undefined });
    expect(anonymous).toMatchObject({ reason: 'Unauthorized', message: expect.stringContaining('secretRef') });
    expect(await look({ ...url(':40'), secretRef: 'missing' })).toMatchObject({
      message: 'Secret golden/missing of secretRef does not exist',
    });
  });

  it('that limits requests is left alone, but its mirrors are not, and the message names the one that answered', async () => {
    let access: RegistryAccess = { plainRegistries: [registry.host] };
    const observe = createObserver({
      kube,
      allowedAddresses: ['127.0.0.0/8'],
      registries: () => Promise.resolve(access),
      architecture: 'amd64',
      now: Date.now,
    });
    const { digest } = await pushDisk(target, Buffer.alloc(512, 7), 'limited');
    const auths = { [registry.direct]: { username: 'tester', password: 's3cret-pass' } };
    const data = { '.dockerconfigjson': btoa(JSON.stringify({ auths })) };
    kube.seed(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'golden', name: 'docker' }, data });
    const source = sourceOf({ registry: { ...url(':limited'), secretRef: 'docker' } });
    const ask = () => observe({ source, namespace: 'golden', known: {} });
    registry.intercept = (_, response) => {
      response.writeHead(429, { 'retry-after': '600' }).end();
      return true;
    };
    expect(await ask()).toMatchObject({ is: 'failed', reason: 'RateLimited' });
    expect(await ask()).toMatchObject({ is: 'waiting' });
    const mirror = [{ location: `${registry.direct}/disks`, insecure: true }];
    const registryRules = readRegistriesConf({ registry: [{ location: `${registry.host}/disks`, mirror }] });
    access = { ...access, registryRules };
    expect(await ask()).toMatchObject({
      is: 'found',
      digest,
      message: expect.stringContaining(`; ${registry.direct}/disks/fedora answered`) as string,
    });
    registry.intercept = undefined;
  });

  it('is not reached at an address that is not allowed', async () => {
    const source = sourceOf({ registry: url(':40') });
    const refused = await observerOf([registry.host], [])({ source, namespace: 'golden', known: {} });
    expect(refused).toMatchObject({ is: 'failed', reason: 'AddressRefused' });
  });
});

describe('a web server', () => {
  interface Reply {
    readonly status: number;
    readonly headers?: Record<string, string>;
    readonly body?: string;
  }
  let server: Server;
  let origin: string;
  let reply: (method: string, path: string, headers: IncomingHttpHeaders) => Reply;
  let hits: string[] = [];
  beforeAll(async () => {
    server = createServer((request, response) => {
      hits.push(`${request.method} ${request.url}`);
      const { status, headers = {}, body = '' } = reply(request.method ?? '', request.url ?? '', request.headers);
      response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  beforeEach(() => {
    hits = [];
  });
  afterAll(() => server.close());

  const look = (http: object, known: Validators = {}) =>
    observerOf([])({
      source: sourceOf({ http: { url: `${origin}/a.img?token=hidden`, ...http } }),
      namespace: 'golden',
      known,
    });

  it('is asked on condition, once it told a validator', async () => {
    reply = (_method, _path, headers) =>
      headers['if-none-match'] === '"1"' ? { status: 304 } : { status: 200, headers: { etag: '"1"' } };
    const first = await look({});
    expect(first).toMatchObject({ is: 'found', digest: expect.stringMatching(/^validator:/), memory: { etag: '"1"' } });
    expect(await look({}, { etag: '"1"' })).toEqual({
      is: 'same',
      message: `${origin}/a.img answered 304: not modified`,
    });
    expect(hits).toEqual(['HEAD /a.img?token=hidden', 'HEAD /a.img?token=hidden']);
  });

  it('goes by the date where there is no tag, and gives up where there is neither', async () => {
    const date = 'Sun, 01 Mar 2026 00:00:00 GMT';
    reply = () => ({ status: 200, headers: { 'last-modified': date } });
    expect(await look({})).toMatchObject({ is: 'found', memory: { lastModified: date } });
    expect(await look({}, { lastModified: date })).toMatchObject({ is: 'same' });
    reply = () => ({ status: 200 });
    expect(await look({})).toMatchObject({
      is: 'failed',
      reason: 'NoValidator',
      message: expect.stringContaining('checksumURL'),
    });
  });

  it('is taken at its word where it states a digest', async () => {
    const bytes = Buffer.alloc(32, 7);
    reply = () => ({ status: 200, headers: { etag: '"1"', 'repr-digest': `sha-256=:${bytes.toString('base64')}:` } });
    const digest = `sha256:${bytes.toString('hex')}`;
    expect(await look({})).toEqual({
      is: 'found',
      digest,
      message: `${origin}/a.img states ${digest}`,
      memory: { etag: '"1"' },
    });
  });

  it('is asked with GET where HEAD is unknown', async () => {
    reply = (method) =>
      method === 'HEAD' ? { status: 405 } : { status: 200, headers: { etag: '"2"' }, body: 'x'.repeat(1000) };
    expect(await look({})).toMatchObject({ is: 'found' });
  });

  it('names a version by the digest in its checksum file', async () => {
    const hex = 'ab'.repeat(32);
    reply = () => ({ status: 200, body: `${'00'.repeat(32)}  b.img\n${hex} *a.img\n` });
    const checksumURL = `${origin}/SHA256SUMS`;
    expect(await look({ checksumURL })).toMatchObject({ is: 'found', digest: `sha256:${hex}` });
    expect(hits).toEqual(['GET /SHA256SUMS']);
    reply = () => ({ status: 200, body: 'nothing' });
    expect(await look({ checksumURL })).toMatchObject({ is: 'failed', reason: 'ChecksumMissing' });
  });

  describe('with mirrors', () => {
    const gone = 'http://127.0.0.1:9';
    const seen = (prefix: string, locations: readonly string[], url: string, known: Validators = {}) => {
      const mirrors = readMirrors({ source: [{ prefix, mirror: locations.map((location) => ({ location })) }] });
      const http = { url, checksumURL: undefined };
      return observerOf([], undefined, { mirrors })({ source: sourceOf({ http }), namespace: 'golden', known });
    };

    it('is not asked where a mirror answers, which the message names; the version is that of the file', async () => {
      reply = () => ({ status: 200, headers: { etag: '"1"' } });
      const own = await look({ url: `${origin}/a.img` });
      hits = [];
      const mirrored = await seen(gone, [`${origin}/copies`], `${gone}/a.img`);
      expect(mirrored).toMatchObject({ message: `${gone}/a.img (at ${origin}/copies/a.img) has ETag "1"` });
      expect(hits).toEqual(['HEAD /copies/a.img']);
      const again = await seen(gone, [`${origin}/copies`], `${gone}/a.img`, { etag: '"1"' });
      expect(again).toMatchObject({ is: 'same' });
      expect(own).toMatchObject({ is: 'found' });
    });

    it('is asked where no mirror has the file, and gets its credentials alone', async () => {
      const sent: (string | undefined)[] = [];
      reply = (_method, path, { authorization }) => {
        sent.push(authorization);
        return path.startsWith('/copies') ? { status: 404 } : { status: 200, headers: { etag: '"1"' } };
      };
      const url = `${origin.replace('http://', 'http://me:secret@')}/a.img`;
      expect(await seen(origin, [gone, `${origin}/copies`], url)).toMatchObject({ is: 'found' });
      expect(sent).toEqual([undefined, `Basic ${btoa('me:secret')}`]);
    });

    it('is asked alone while its mirror is left alone, which the message says', async () => {
      const mirrors = readMirrors({ source: [{ prefix: origin, mirror: [{ location: gone }] }] });
      const observe = observerOf([], undefined, { mirrors });
      reply = () => ({ status: 200, headers: { etag: '"1"' } });
      const ask = () =>
        observe({ source: sourceOf({ http: { url: `${origin}/a.img` } }), namespace: 'golden', known: {} });
      for (let times = 0; times < 4; times += 1) expect(await ask()).toMatchObject({ is: 'found' });
      expect(hits).toHaveLength(4);
      server.closeAllConnections();
      const offline = observerOf([], undefined, {
        mirrors: readMirrors({ source: [{ prefix: 'http://127.0.0.1:10', mirror: [{ location: gone }] }] }),
      });
      const down = sourceOf({ http: { url: 'http://127.0.0.1:10/a.img' } });
      const fail = () => offline({ source: down, namespace: 'golden', known: {} });
      for (let times = 0; times < 3; times += 1) await fail();
      expect(await fail()).toMatchObject({
        message: expect.stringMatching(/127\.0\.0\.1:10.*elsewhere: 127\.0\.0\.1:9 has failed several times/) as string,
      });
    });

    it('is asked for with GET where a mirror knows no HEAD', async () => {
      reply = (method) => (method === 'HEAD' ? { status: 405 } : { status: 200, headers: { etag: '"1"' } });
      expect(await seen(gone, [`${origin}/copies`], `${gone}/a.img`)).toMatchObject({ is: 'found' });
      expect(hits).toEqual(['HEAD /copies/a.img', 'GET /copies/a.img']);
    });

    it('is named with them where nobody has it', async () => {
      reply = () => ({ status: 404 });
      const observed = await seen(gone, [`${origin}/copies`], `${gone}/a.img`);
      expect(observed).toMatchObject({
        is: 'failed',
        message: expect.stringMatching(/127\.0\.0\.1:9.*elsewhere: .*copies\/a\.img answered 404/) as string,
      });
    });
  });

  it('that does not answer is left alone for a while, and then asked once', async () => {
    const observe = observerOf([]);
    const gone = sourceOf({ http: { url: 'http://127.0.0.1:9/a.img' } });
    const ask = async (source = gone) => {
      const observation = await observe({ source, namespace: 'golden', known: {} });
      return observation.is === 'failed' ? observation : { message: observation.is, retryAfterSeconds: undefined };
    };
    for (let times = 0; times < 3; times += 1) expect((await ask()).message).toContain('cannot connect');
    expect(await ask()).toMatchObject({
      reason: 'Unreachable',
      message: '127.0.0.1:9 has failed several times in a row, and is not asked again for 30 seconds',
      retryAfterSeconds: 30,
    });
    reply = () => ({ status: 200, headers: { etag: '"1"' } });
    expect((await ask(sourceOf({ http: { url: `${origin}/a.img` } }))).message).toBe('found');
    time += 30_000;
    expect((await ask()).message).toContain('cannot connect');
    expect((await ask()).retryAfterSeconds).toBe(60);
  });

  it('says when to come back', async () => {
    reply = () => ({ status: 503, headers: { 'retry-after': '77' } });
    expect(await look({})).toMatchObject({ is: 'failed', reason: 'RateLimited', retryAfterSeconds: 77 });
  });

  it('needs a certificate authority that exists', async () => {
    expect(await look({ certConfigMap: 'ca' })).toMatchObject({
      is: 'failed',
      message: expect.stringContaining('golden/ca'),
    });
    kube.seed(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'golden', name: 'ca' },
      data: {},
    });
    reply = () => ({ status: 200, headers: { etag: '"1"' } });
    expect(await look({ certConfigMap: 'ca' })).toMatchObject({ is: 'found' });
  });
});

describe('an object store', () => {
  let facts: Record<string, string> = {};
  let authorizations: (string | undefined)[] = [];
  let server: Server;
  let url = '';
  beforeAll(async () => {
    server = createServer((request, response) => {
      authorizations.push(request.headers.authorization);
      const isThere = request.url?.startsWith('/bucket/a%20key') === true || request.url?.startsWith('/bucket/a key');
      response
        .writeHead(isThere === true ? 200 : 404, isThere === true ? { 'content-length': '5', ...facts } : {})
        .end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/bucket/a%20key`;
  });
  afterAll(() => server.close());
  const look = (over: object = {}, known: Validators = {}) =>
    observerOf([])({ source: sourceOf({ s3: { url, ...over } }), namespace: 'golden', known });

  it('tells a change by version and ETag, with one request each', async () => {
    facts = { etag: '"1"', 'x-amz-version-id': 'v1' };
    authorizations = [];
    const first = await look();
    if (first.is !== 'found') throw new Error(first.message);
    expect(first.message).toBe(`${url} has version v1 and ETag "1"`);
    expect(await look({}, first.memory)).toMatchObject({ is: 'same' });
    expect(authorizations.length).toBe(2);
    // The same bytes put anew are a new version, and may be told from the old ones.
    facts = { etag: '"1"', 'x-amz-version-id': 'v2' };
    const second = await look({}, first.memory);
    expect(second).toMatchObject({ is: 'found', digest: expect.not.stringMatching(first.digest) as string });
    facts = {};
    expect(await look()).toMatchObject({ is: 'failed', reason: 'NoValidator' });
  });

  it('is not asked where a mirror has the object, to which nothing is signed', async () => {
    facts = { etag: '"1"' };
    authorizations = [];
    const gone = 'http://127.0.0.1:9/bucket';
    const mirrors = readMirrors({ source: [{ prefix: gone, mirror: [{ location: url.replace('/a%20key', '') }] }] });
    const source = sourceOf({ s3: { url: `${gone}/a%20key` } });
    const observed = await observerOf([], undefined, { mirrors })({ source, namespace: 'golden', known: {} });
    expect(observed).toMatchObject({ is: 'found', message: `${gone}/a%20key (at ${url}) has ETag "1"` });
    expect(authorizations).toEqual([undefined]);
  });

  it('is asked with the keys of the Secret, and says what it refused', async () => {
    const data = { accessKeyId: btoa('AKIA-test'), secretKey: btoa('s3cret-key') };
    kube.seed(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'golden', name: 'keys' }, data });
    facts = { etag: '"1"' };
    authorizations = [];
    expect(await look({ secretRef: 'keys' })).toMatchObject({ is: 'found' });
    expect(authorizations[0]).toContain('AKIA-test');
    expect(authorizations[0]).not.toContain('s3cret-key');
    expect(await look({ url: url.replace('key', 'other') })).toMatchObject({ is: 'failed' });
    expect(await look({ secretRef: 'absent' })).toMatchObject({
      is: 'failed',
      message: expect.stringContaining('golden/absent') as string,
    });
  });
});

describe('a volume', () => {
  it('is told by its UID', async () => {
    const source = sourceOf({ pvc: { name: 'golden' } });
    expect(await observerOf([])({ source, namespace: 'ns', known: {} })).toMatchObject({
      is: 'failed',
      reason: 'VolumeNotFound',
    });
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: 'ns', name: 'golden' },
      spec: {},
    };
    const seeded = kube.seed(persistentVolumeClaims, volume);
    expect(await observerOf([])({ source, namespace: 'ns', known: {} })).toMatchObject({
      digest: `uid:${seeded.metadata.uid}`,
    });
  });
});
