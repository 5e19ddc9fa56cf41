import { createHostHealth } from '#shared/clients/http/health.ts';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SignatureRule } from '#shared/api/bullion/verify.ts';
import { configMaps, secrets } from '#shared/api/foreign/core.ts';
import { createRegistryPace } from '#shared/clients/registry/refusal.ts';
import { parseReference } from '#shared/clients/registry/reference.ts';
import { minisign, readMinisignKeys } from '#shared/golden/signature/minisign.ts';
import type { SignatureRequest } from '#shared/golden/signature/outcome.ts';
import { type SignatureDeps, verifySignature } from '#shared/golden/signature/verify.ts';
import { ecKey, payloadOf, pemOf, pushSignatures, signBytes } from '#test/support/cosign.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import { type Answer, type Origin, startOrigin } from '#test/support/origin.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { hasRegistry, startRegistry } from '#test/support/registry/server.ts';

const hex = (text: string) => createHash('sha256').update(text).digest('hex');
const digest = `sha256:${hex('fedora')}`;
const sums = `${hex('fedora')}  fedora.qcow2\n`;

/** As minisign writes them: prehashed unless `isPlain`. */
const minisignKey = (id = 'ABCDEFGH') => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32);
  const line = (...parts: readonly (string | Buffer)[]) =>
    Buffer.concat(parts.map((part) => Buffer.from(part as string))).toString('base64');
  return {
    public: `untrusted comment: minisign public key\n${line('Ed', id, raw)}\n`,
    sign: (text: string, { isPlain = false, comment = 'timestamp:1700000000\tfile:SUMS' } = {}) => {
      const data = isPlain ? Buffer.from(text) : createHash('blake2b512').update(text).digest();
      const signature = sign(null, data, privateKey);
      const global = sign(null, Buffer.concat([signature, Buffer.from(comment)]), privateKey);
      const head = `untrusted comment: whatever\n${line(isPlain ? 'Ed' : 'ED', id, signature)}\n`;
      return `${head}trusted comment: ${comment}\n${global.toString('base64')}\n`;
    },
    signify: (text: string) =>
      `untrusted comment: verify with x.pub\n${line('Ed', id, sign(null, Buffer.from(text), privateKey))}\n`,
  };
};

const vendor = minisignKey();
const gpg: SignatureRule = { gpg: { keys: { configMap: 'keys' } } };
const mini: SignatureRule = { minisign: { keys: { configMap: 'keys' } } };

let kube: MemoryKube;
let origin: Origin;
let files: Record<string, Answer | string>;
beforeAll(async () => {
  origin = await startOrigin(({ path }) => {
    const answer = files[path] ?? { status: 404 };
    return typeof answer === 'string' ? { body: Buffer.from(answer) } : answer;
  });
});
afterAll(() => origin.close());

const keysAre = (text: string, name = 'keys') =>
  kube.seed(configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'golden', name },
    data: { 'minisign.pub': text },
  });

beforeEach(() => {
  kube = createMemoryKube();
  files = {};
  keysAre(vendor.public);
});

const deps = (over: Partial<SignatureDeps> = {}): SignatureDeps => ({
  kube,
  allowedAddresses: ['127.0.0.0/8'],
  registries: () => Promise.resolve({ plainRegistries: [] }),
  pace: createRegistryPace(Date.now),
  health: createHostHealth(Date.now),
  now: Date.now,
  ...over,
});
const verify = (over: Partial<SignatureRequest> = {}, overDeps: Partial<SignatureDeps> = {}) => {
  const source = { type: 'http', url: `${origin.url}/40/fedora.qcow2`, checksumUrl: `${origin.url}/40/SUMS` } as const;
  return verifySignature(deps(overDeps), { source, namespace: 'golden', rule: mini, digest, ...over });
};

describe('a file over HTTP', () => {
  it('is verified by the keys in the ConfigMap of its namespace', async () => {
    files = { '/40/SUMS': sums, '/40/SUMS.minisig': vendor.sign(sums) };
    const signedAt = '2023-11-14T22:13:20.000Z';
    expect(await verify()).toMatchObject({ is: 'verified', digest, kind: 'minisign', signedAt });
    const message = expect.stringContaining('ConfigMap keys does not exist in namespace other: create it there');
    expect(await verify({ namespace: 'other' })).toMatchObject({ is: 'refused', reason: 'InvalidPolicy', message });
  });

  it.each([
    ['a server that fails', { status: 500 }, 'Unavailable'],
    ['a server that wants to be left alone', { status: 429, headers: { 'retry-after': 30 } }, 'Unavailable'],
    ['a connection that is cut', { body: Buffer.alloc(100), cutAfter: 10 }, 'Interrupted'],
  ])('is undecided, not unsigned: %s', async (_, answer: Answer, reason) => {
    files = { '/40/SUMS': answer };
    expect(await verify()).toMatchObject({ is: 'unreachable', reason });
    files = { '/40/SUMS': sums, '/40/SUMS.minisig': answer };
    expect(await verify()).toMatchObject({ is: 'unreachable', reason });
  });

  it('is asked again when the server says so', async () => {
    files = { '/40/SUMS': { status: 503, headers: { 'retry-after': 30 } } };
    expect(await verify()).toMatchObject({ is: 'unreachable', retryAfterSeconds: 30 });
  });

  it('has a checksum file of no more than a megabyte', async () => {
    const large = sums.padEnd(1024 * 1024 + 1, '\n');
    files = { '/40/SUMS': large, '/40/SUMS.minisig': vendor.sign(large) };
    expect(await verify()).toMatchObject({
      is: 'refused',
      reason: 'Unsigned',
      message: expect.stringMatching(/1048576/),
    });
    const just = sums.padEnd(1024 * 1024, '\n');
    files = { '/40/SUMS': just, '/40/SUMS.minisig': vendor.sign(just) };
    expect(await verify()).toMatchObject({ is: 'verified' });
  });

  it('is looked for at allowed addresses alone, also where a redirect or the policy leads elsewhere', async () => {
    files = { '/40/SUMS': sums, '/40/SUMS.minisig': vendor.sign(sums) };
    expect(await verify({}, { allowedAddresses: [] })).toMatchObject({ is: 'unreachable', reason: 'AddressRefused' });
    files = { '/40/SUMS': { status: 302, headers: { location: 'http://169.254.169.254/latest' } } };
    expect(await verify()).toMatchObject({ is: 'unreachable', reason: 'AddressRefused' });
    const rule = { minisign: { keys: { configMap: 'keys' }, checksums: 'http://169.254.169.254/latest' } };
    expect(await verify({ rule })).toMatchObject({ is: 'unreachable', reason: 'AddressRefused' });
    for (const checksums of ['file:///etc/passwd', 'data://x', 'ftp://x/y'])
      expect(await verify({ rule: { minisign: { keys: { configMap: 'keys' }, checksums } } })).toMatchObject({
        reason: 'InvalidPolicy',
      });
  });

  it('gets its credentials, and another server does not', async () => {
    const data = { username: btoa('u'), password: btoa('p') };
    kube.seed(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'golden', name: 'login' }, data });
    const other = await startOrigin(() => ({ body: Buffer.from(vendor.sign(sums)) }));
    files = { '/40/SUMS': sums };
    const rule = { minisign: { keys: { configMap: 'keys' }, signature: `${other.url}/s` } };
    const checksumUrl = `${origin.url}/40/SUMS`;
    const source = { type: 'http', url: `${origin.url}/40/fedora.qcow2`, checksumUrl, secretName: 'login' } as const;
    origin.requests.length = 0;
    expect(await verify({ rule, source })).toMatchObject({ is: 'verified' });
    expect(origin.requests.map(({ headers }) => headers.authorization)).toEqual([`Basic ${btoa('u:p')}`]);
    expect(other.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
    await other.close();
  });
});

describe('what cannot be verified', () => {
  const image = parseReference('docker://registry.example/a/b:1');
  it.each<[string, Partial<SignatureRequest>, string, RegExp]>([
    [
      'a volume',
      { source: { type: 'pvc', name: 'x', account: 'default' } },
      'InvalidPolicy',
      /volume has no signature/,
    ],
    ['gpg for a registry', { source: { type: 'registry', image }, rule: gpg }, 'InvalidPolicy', /verified by cosign/],
    ['cosign for a file', { rule: { cosign: {} } }, 'InvalidPolicy', /verified by gpg or minisign/],
    ['bytes that nobody knows', { digest: 'validator:00' }, 'DigestNotSigned', /once they are fetched/],
    ['keys of another kind', { rule: gpg }, 'InvalidPolicy', /other than an OpenPGP public key/],
  ])('is refused with what to do: %s', async (_, request, reason, message) => {
    expect(await verify(request)).toMatchObject({ is: 'refused', reason, message: expect.stringMatching(message) });
  });

  it('for lack of a Secret is refused', async () => {
    const source = { type: 'http', url: `${origin.url}/x`, checksumUrl: `${origin.url}/y`, secretName: 'no' } as const;
    expect(await verify({ source })).toMatchObject({ is: 'refused', reason: 'InvalidPolicy' });
  });
});

describe.skipIf(!hasRegistry())('an image in a registry', () => {
  it('is verified by the keys in the ConfigMap, or undecided while the registry is away', async () => {
    const registry = await startRegistry();
    const target = { host: registry.host, repository: 'disks/fedora' };
    const keys = ecKey();
    keysAre(pemOf(keys), 'cosign');
    const pushed = await pushDisk(target, Buffer.alloc(512, 1), '40');
    const payload = payloadOf(pushed.digest);
    await pushSignatures(target, pushed.digest, [{ payload, signature: signBytes(keys, payload) }]);
    const source = { type: 'registry', image: parseReference(`docker://${registry.host}/disks/fedora:40`) } as const;
    const rule = { cosign: { keys: { configMap: 'cosign' } } };
    const plain = { registries: () => Promise.resolve({ plainRegistries: [registry.host] }) };
    const ask = () => verify({ source, rule, digest: pushed.digest }, plain);
    expect(await ask()).toMatchObject({ is: 'verified', digest: pushed.digest });
    registry.intercept = (_, response) => {
      response.writeHead(500).end();
      return true;
    };
    expect(await ask()).toMatchObject({ is: 'unreachable', reason: 'RegistryFailed' });
    await registry.close();
    expect(await ask()).toMatchObject({ is: 'unreachable', reason: 'Unreachable' });
  });
});

describe('minisign and signify', () => {
  afterEach(() => {
    files = {};
  });
  const keys = readMinisignKeys([Buffer.from(vendor.public)], 'x');
  const judge = (signature: string, text = sums) => {
    if ('is' in keys) throw new Error(keys.message);
    return minisign(keys).detached(Buffer.from(text), Buffer.from(signature), 'x');
  };

  it.each([
    ['prehashed', vendor.sign(sums)],
    ['not prehashed', vendor.sign(sums, { isPlain: true })],
    ['without a comment', vendor.signify(sums)],
  ])('sign: %s', async (_, signature) => {
    expect(await judge(signature)).toMatchObject({ is: 'signed', text: sums });
  });

  it.each([
    ['other text', vendor.sign(`${sums}x`), 'BadSignature'],
    ['another key', minisignKey('HGFEDCBA').sign(sums), 'WrongKey'],
    ['another key of the same number', minisignKey().sign(sums), 'BadSignature'],
    ['a comment that was changed', vendor.sign(sums).replace('1700000000', '1800000000'), 'BadSignature'],
    ['nothing', '', 'BadSignature'],
  ])('are refused: %s', async (_, signature, reason) => {
    expect(await judge(signature)).toMatchObject({ is: 'refused', reason });
  });

  it('are never good when a byte is changed, and nothing is thrown', async () => {
    const good = vendor.sign(sums);
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.integer({ min: 1, max: 127 }), fc.string(), async (at, flip, text) => {
        const changed = Buffer.from(good);
        changed[at % changed.length]! ^= flip;
        expect(['signed', 'refused']).toContain((await judge(changed.toString())).is);
        expect((await judge(good, `${sums}${text || 'x'}`)).is).toBe('refused');
        expect((await judge(text)).is).toBe('refused');
        expect('is' in readMinisignKeys([Buffer.from(text)], 'x')).toBe(true);
      }),
    );
  });
});
