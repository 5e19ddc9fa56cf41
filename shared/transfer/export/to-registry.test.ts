// Exports to Debian's docker-registry, whose images are imported again and compared with the disk.
import { mkdirSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync, closeSync } from 'node:fs';
import { type KeyObject, generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { layerAround } from '#shared/transfer/export/disk-layer.ts';
import { createHttpClient } from '#shared/clients/http/client.ts';
import { createRegistryClient } from '#shared/clients/registry/client.ts';
import { createRegistryPace } from '#shared/clients/registry/refusal.ts';
import { judgeByKeys, verifyImage } from '#shared/golden/signature/cosign/cosign.ts';
import { readPublicKeys } from '#shared/golden/signature/cosign/keys.ts';
import { hasCosign, program as cosign } from '#test/support/cosign-program.ts';
import { startOrigin } from '#test/support/origin.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise, writeDisk } from '#test/support/disk.ts';
import { pushDisk, pushIndex } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { transferSpec } from '#test/support/registry/transfer.ts';
import { hasTools, runTool } from '#test/support/tools.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;
const volume = join(root, 'volume.raw');
/** Of several chunks. */
const large = join(root, 'large.raw');
const quiet = { run: 'test', signal: new AbortController().signal, send: () => Promise.resolve(), log: () => {} };

const isCosignThere = hasCosign();

describe.skipIf(!hasRegistry() || !hasTools('qemu-img'))('an export to a registry', { timeout: 120_000 }, () => {
  let registry: TestRegistry;
  let closed: TestRegistry;
  beforeAll(async () => {
    [registry, closed] = await Promise.all([startRegistry(), startRegistry({ withLogin: true })]);
    for (const [path, bytes] of [
      [volume, 2 * mib],
      [large, 40 * mib],
    ] as const) {
      writeDisk(path, 64 * mib);
      const file = openSync(path, 'r+');
      writeSync(file, noise('layer', bytes), 0, bytes, 8 * mib);
      closeSync(file);
    }
  });
  afterEach(() => {
    registry.intercept = undefined;
    registry.requests.length = 0;
  });
  afterAll(() => Promise.all([registry, closed].map((one) => one.close())));

  interface Over {
    readonly mode?: string;
    readonly owner?: string;
    readonly compression?: string;
    readonly image?: object;
    /** The disk. Default: the small one. */
    readonly path?: string;
  }
  const push = (tag: string, over: Over = {}) =>
    runTransfer(
      TransferSpec.parse({
        mode: over.mode ?? 'export',
        source: { type: 'volume', path: over.path ?? volume },
        export: {
          form: { format: 'qcow2', compression: over.compression ?? 'none' },
          image: {
            type: 'registry',
            url: `docker://${registry.host}/disks/made:${tag}`,
            plainHttp: true,
            owner: over.owner ?? 'uid',
            ...over.image,
          },
        },
        scratchDir: join(root, 'scratch'),
        limits: { retries: 3, idleSeconds: 20 },
        allowedAddresses: ['127.0.0.0/8'],
      }),
      quiet,
    );
  const pulled = async (reference: string): Promise<Buffer> => {
    const path = join(root, `pulled-${Math.random()}.img`);
    const report = await runTransfer(transferSpec(reference, path, { capacityBytes: 128 * mib }), quiet);
    expect(report).toMatchObject({ outcome: 'succeeded' });
    return readFileSync(path);
  };
  const isDisk = async (reference: string, path = volume): Promise<boolean> =>
    (await pulled(reference)).equals(readFileSync(path));
  const statusOf = async (tag: string): Promise<number> => {
    const headers = { accept: 'application/vnd.oci.image.manifest.v1+json' };
    return (await fetch(`http://${registry.direct}/v2/disks/made/manifests/${tag}`, { headers })).status;
  };
  const fetched = async (path: string) => {
    const headers = { accept: 'application/vnd.oci.image.manifest.v1+json' };
    const response = await fetch(`http://${registry.direct}/v2/disks/made/${path}`, { headers });
    return (await response.json()) as {
      readonly annotations: Readonly<Record<string, string>>;
      readonly layers: readonly { readonly size: number; readonly annotations: object }[];
      readonly config: { readonly digest: string };
    };
  };
  const signingSecret = (name: string, data: Readonly<Record<string, string>>): string => {
    const dir = join(root, name);
    mkdirSync(dir);
    for (const [key, value] of Object.entries(data)) writeFileSync(join(dir, key), value);
    return dir;
  };
  const digestOf = (report: Awaited<ReturnType<typeof push>>): string =>
    report.outcome === 'succeeded' ? (report.object?.digest ?? '') : report.message;
  const patches = () => registry.requests.filter(({ method }) => method === 'PATCH');

  it('is a containerDisk, with the same digest each time', async () => {
    const report = await push('one');
    const digest = report.outcome === 'succeeded' ? report.object?.digest : undefined;
    expect(report).toMatchObject({
      outcome: 'succeeded',
      inspection: { format: 'qcow2', virtualSize: 64 * mib },
      object: { digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), isConfirmed: true },
    });
    expect(await isDisk(`docker://${registry.host}/disks/made:one`)).toBe(true);
    expect(await isDisk(`docker://${registry.host}/disks/made@${digest}`)).toBe(true);
    expect(await push('one')).toMatchObject({ outcome: 'succeeded', object: { digest } });
  });

  it('says what it is, in annotations and labels, and keeps the labels of the disk', async () => {
    const annotations = { 'org.opencontainers.image.title': 'root' };
    const environment = ['INSTANCETYPE_KUBEVIRT_IO_DEFAULT_PREFERENCE=fedora'];
    const created = '2026-01-02T03:04:05Z';
    const report = await push('said', { image: { annotations, environment, created } });
    const sha256 = report.outcome === 'succeeded' ? report.digests['sha256'] : '';
    const expected = {
      ...annotations,
      'org.opencontainers.image.created': created,
      'org.opencontainers.image.revision': `sha256:${sha256}`,
    };
    const manifest = await fetched('manifests/said');
    expect(manifest.annotations).toEqual({ ...expected, 'dev.bullion.export': 'uid' });
    expect(await fetched(`blobs/${manifest.config.digest}`)).toMatchObject({
      created,
      config: { Labels: expected, Env: environment },
    });
    const path = join(root, 'said.img');
    const again = await runTransfer(
      transferSpec(`docker://${registry.host}/disks/made:said`, path, { capacityBytes: 128 * mib }),
      quiet,
    );
    expect(again).toMatchObject({
      inspection: { labels: { 'instancetype.kubevirt.io/default-preference': 'fedora' } },
    });
  });

  it.each(['zlib', 'zstd'])('is compressed by %s, and the same disk', async (compression) => {
    const zeroes = openSync(volume, 'r+');
    writeSync(zeroes, Buffer.alloc(8 * mib, 'compressible'), 0, 8 * mib, 50 * mib);
    closeSync(zeroes);
    await push(`plain-${compression}`);
    await push(compression, { compression });
    const [plain, packed] = await Promise.all([
      fetched(`manifests/plain-${compression}`),
      fetched(`manifests/${compression}`),
    ]);
    expect(packed.layers[0]!.size).toBeLessThan(plain.layers[0]!.size - 7 * mib);
    expect(await isDisk(`docker://${registry.host}/disks/made:${compression}`)).toBe(true);
  });

  describe('with a key', () => {
    const client = () => {
      const http = createHttpClient({ isRefused: () => false, idleMs: 10_000 });
      return createRegistryClient({ http, host: registry.direct, plainHttp: true, pace: createRegistryPace(Date.now) });
    };
    const image = () => ({ host: registry.direct, repository: 'disks/made' });
    const verify = (digest: string, pem: string) =>
      verifyImage(client(), { image: image(), digest }, judgeByKeys(readPublicKeys([pem]).keys));
    const pairs = {
      ec: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
      rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
      ed25519: generateKeyPairSync('ed25519'),
    };
    const privatePem = (key: KeyObject, passphrase?: string) =>
      key.export({
        type: 'pkcs8',
        format: 'pem',
        ...(passphrase === undefined ? {} : { cipher: 'aes-256-cbc', passphrase }),
      }) as string;

    it.each(['ec', 'rsa', 'ed25519'] as const)('of type %s is signed before it has its tag', async (type) => {
      const { privateKey, publicKey } = pairs[type];
      const passphrase = type === 'ec' ? 'open' : undefined;
      const data = { 'signing.key': privatePem(privateKey, passphrase), ...(passphrase && { password: passphrase }) };
      const dir = signingSecret(`sign-${type}`, data);
      const pushed = () => push(`signed-${type}`, { image: { signing: { dir, name: 'keys' } } });
      const digest = digestOf(await pushed());
      const puts = registry.requests.filter(({ method, path }) => method === 'PUT' && path.includes('/manifests/'));
      expect(puts.map(({ path }) => path.split('/').at(-1))).toEqual([
        `${digest.replace(':', '-')}.sig`,
        `signed-${type}`,
      ]);
      const pem = publicKey.export({ type: 'spki', format: 'pem' }) as string;
      expect(await verify(digest, pem)).toMatchObject({ is: 'verified', kind: 'cosign', digest });
      const stranger = pairs[type === 'ec' ? 'ed25519' : 'ec'].publicKey.export({ type: 'spki', format: 'pem' });
      expect(await verify(digest, stranger as string)).toMatchObject({ is: 'refused', reason: 'WrongKey' });
      // Another attempt adds no second signature.
      expect(digestOf(await pushed())).toBe(digest);
      expect((await fetched(`manifests/${digest.replace(':', '-')}.sig`)).layers).toHaveLength(1);
      expect(await push(`signed-${type}`, { mode: 'discard' })).toMatchObject({ outcome: 'succeeded' });
      expect(await statusOf(`${digest.replace(':', '-')}.sig`)).toBe(404);
    });

    it.skipIf(!isCosignThere).each(['ec', 'rsa', 'ed25519'] as const)(
      'of type %s makes a signature that cosign itself accepts',
      async (type) => {
        const { privateKey, publicKey } = pairs[type];
        const dir = signingSecret(`cosign-${type}`, { key: privatePem(privateKey) });
        const digest = digestOf(await push(`cosign-${type}`, { image: { signing: { dir, name: 'keys' } } }));
        const pub = join(root, `cosign-${type}.pub`);
        writeFileSync(pub, publicKey.export({ type: 'spki', format: 'pem' }));
        const reference = `${registry.direct}/disks/made@${digest}`;
        const options = ['--key', pub, '--insecure-ignore-tlog=true', '--allow-insecure-registry'];
        expect(runTool(cosign ?? 'cosign', ['verify', ...options, reference]).toString()).toContain(digest);
      },
    );

    it.each<[string, Record<string, string>, RegExp, string?]>([
      ['without a key', { other: 'text' }, /the Secret keys for signatures has no private key/],
      ['that is missing', {}, /the Secret keys of the signature is missing in this namespace/, 'TargetFailed'],
      [
        'in the format of cosign',
        { k: '-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----' },
        /own format of cosign: create one with openssl/,
      ],
      [
        'with another passphrase',
        { k: privatePem(pairs.ec.privateKey, 'a'), password: 'b' },
        /needs another "password"/,
      ],
    ])('%s fails before anything is sent', async (what, data, message, reason = 'InvalidSpec') => {
      const dir = signingSecret(`bad ${what}`, data);
      const report = await push('bad', { image: { signing: { dir, name: 'keys' } } });
      expect(report).toMatchObject({ outcome: 'failed', reason, message: expect.stringMatching(message) });
      expect(registry.requests).toEqual([]);
    });
  });

  describe('at another location than the one that the user wrote', () => {
    const basic = `Basic ${Buffer.from('tester:s3cret-pass').toString('base64')}`;
    const sentTo = async (name: string, secret: Readonly<Record<string, string>>, host: string) => {
      const tokens = await startOrigin(() => ({ status: 401 }));
      const realm = `Bearer realm="${tokens.url}/token",service="tokens"`;
      registry.intercept = (_, response) => {
        response.writeHead(401, { 'www-authenticate': realm }).end();
        return true;
      };
      const secretDir = signingSecret(name, secret);
      const report = await push('elsewhere', {
        image: {
          url: `docker://${host}/disks/made:elsewhere`,
          places: [{ host: registry.host, repository: 'disks/made', plainHttp: true }],
          secretDir,
          secretName: 'login',
        },
      });
      expect(report).toMatchObject({ outcome: 'failed' });
      await tokens.close();
      expect(tokens.requests.length).toBeGreaterThan(0);
      return [...tokens.requests, ...registry.requests].flatMap(({ headers }) => headers.authorization ?? []);
    };
    const login = { username: 'tester', password: 's3cret-pass' };
    const config = (host: string) => ({ '.dockerconfigjson': JSON.stringify({ auths: { [host]: login } }) });

    it('gives neither it nor its token service a login that is for that one', async () => {
      expect(await sentTo('for-own', login, 'registry.example')).toEqual([]);
      expect(await sentTo('for-own-config', config('registry.example'), 'registry.example')).toEqual([]);
    });

    it('gives its token service its own entry of a Docker configuration', async () => {
      expect(new Set(await sentTo('for-place', config(registry.host), 'registry.example'))).toEqual(new Set([basic]));
      expect(new Set(await sentTo('for-itself', login, registry.host))).toEqual(new Set([basic]));
    });

    it('sends no chunk to another server, and no token', async () => {
      const stranger = await startOrigin(() => ({ status: 202 }));
      registry.intercept = ({ method }, response) => {
        if (method !== 'POST') return false;
        response.writeHead(202, { location: `${stranger.url}/upload` }).end();
        return true;
      };
      const report = await push('stranger');
      await stranger.close();
      expect(report).toMatchObject({ outcome: 'failed', message: expect.stringContaining('sends uploads to another') });
      expect(stranger.requests).toEqual([]);
    });
  });

  it('continues a chunk where the registry has it, and begins none anew', async () => {
    let cuts = 0;
    registry.intercept = ({ method }, response) => {
      if (method !== 'PATCH' || cuts >= 2) return false;
      cuts += 1;
      response.destroy();
      return true;
    };
    expect(await push('cut', { path: large })).toMatchObject({ outcome: 'succeeded' });
    expect(registry.requests.filter(({ method }) => method === 'POST')).toHaveLength(2);
    expect(patches().length).toBeGreaterThan(4);
    expect(await isDisk(`docker://${registry.host}/disks/made:cut`, large)).toBe(true);
  });

  it('succeeds where only the answers to its requests are lost', async () => {
    const dropped = new Set<string>();
    registry.intercept = ({ method, path }, response) => {
      const what = `${method} ${path.includes('/manifests/') ? 'manifest' : 'blob'}`;
      const isOnce = (method === 'PATCH' || method === 'PUT') && !dropped.has(what);
      if (!isOnce) return false;
      dropped.add(what);
      // The registry gets the request; its answer ends nowhere.
      response.writeHead = () => response;
      response.write = () => true;
      response.end = () => response.destroy();
      return false;
    };
    expect(await push('lost')).toMatchObject({ outcome: 'succeeded' });
    expect([...dropped].toSorted()).toEqual(['PATCH blob', 'PUT blob', 'PUT manifest']);
    registry.intercept = undefined;
    expect(await isDisk(`docker://${registry.host}/disks/made:lost`)).toBe(true);
  });

  it('replaces no image of somebody else', async () => {
    await pushDisk({ host: registry.direct, repository: 'disks/made' }, noise('other', mib), 'taken');
    expect(await push('taken')).toMatchObject({
      outcome: 'failed',
      reason: 'TargetFailed',
      retryable: false,
      message: expect.stringMatching(/disks\/made:taken exists already, with digest sha256:.*: choose another tag/),
    });
    await pushIndex({ host: registry.direct, repository: 'disks/made' }, [], 'index');
    expect(await push('index')).toMatchObject({ outcome: 'failed', reason: 'TargetFailed' });
    await push('mine');
    expect(await push('mine', { owner: 'another' })).toMatchObject({ outcome: 'failed', reason: 'TargetFailed' });
  });

  it('replaces no image that came while it was sent', async () => {
    let isPushed = false;
    registry.intercept = ({ method }) => {
      if (method !== 'PATCH' || isPushed) return false;
      isPushed = true;
      void pushDisk({ host: registry.direct, repository: 'disks/made' }, noise('late', 4096), 'late');
      return false;
    };
    expect(await push('late')).toMatchObject({ outcome: 'failed', message: expect.stringContaining('exists already') });
  });

  it('is removed where the disk was written to meanwhile, but not what others pushed', async () => {
    await push('torn');
    expect(await push('torn', { mode: 'discard' })).toMatchObject({ outcome: 'succeeded' });
    expect(await statusOf('torn')).toBe(404);
    expect(await push('taken', { mode: 'discard' })).toMatchObject({ outcome: 'succeeded' });
    expect(await statusOf('taken')).toBe(200);
  });

  it('logs in, and says what to check where it may not', async () => {
    const secretDir = join(root, 'login');
    mkdirSync(secretDir);
    writeFileSync(join(secretDir, 'username'), 'tester');
    writeFileSync(join(secretDir, 'password'), 's3cret-pass');
    const url = `docker://${closed.host}/disks/made:one`;
    expect(await push('one', { image: { url } })).toMatchObject({
      outcome: 'failed',
      message: expect.stringMatching(/401.*secretRef/),
    });
    expect(await push('one', { image: { url, secretDir, secretName: 'login' } })).toMatchObject({
      outcome: 'succeeded',
    });
  });
});

describe('the layer of a disk', () => {
  it.each([5, 512, 2 ** 33 - 1, 2 ** 33, 5 * 2 ** 40])('is an archive that tar lists: %d bytes', async (size) => {
    const { head, tail } = layerAround('disk.qcow2', size);
    const path = join(root, `layer-${size}.tar`);
    writeFileSync(path, head);
    truncateSync(path, head.length + size + tail.length);
    const listed = runTool('tar', ['-tv', '--numeric-owner', '-f', path]);
    expect(listed.toString().trim().split('\n')).toEqual([
      expect.stringMatching(/^dr-xr-xr-x 107\/107 +0 1970-01-01 00:00 disk\/$/),
      expect.stringMatching(new RegExp(`^-r--r----- 107/107 +${size} 1970-01-01 00:00 disk/disk.qcow2$`)),
    ]);
  });
});
