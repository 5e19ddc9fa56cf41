// Objects of clouds as sources: by key file, shared access signature or the identity of the pod; tokens that end in mid-transfer; credentials that
// are none.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { WorkloadIdentity } from '#shared/clients/cloud/identity.ts';
import { audienceOf } from '#shared/clients/cloud/identity.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { type Clouds, client, provider, startClouds, tenant } from '#test/support/clouds.ts';
import type { CloudAnswer, CloudRequest } from '#test/support/cloud-http.ts';
import { fileAnswer, startOrigin } from '#test/support/origin.ts';

const disk = Buffer.concat([randomBytes(2 ** 20), Buffer.alloc(2 ** 20), randomBytes(2 ** 20)]);
const root = mkdtempSync(join(tmpdir(), 'bullion-clouds-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

type Read = (answer: CloudAnswer, index: number) => CloudAnswer;

const serve = async (read: Read = (answer) => answer) => {
  let index = 0;
  const store = (_: string, { method, url, headers }: CloudRequest): CloudAnswer => {
    if (url.pathname !== '/images/disk.raw') return { status: 404 };
    const answer = fileAnswer({ method, path: url.pathname, headers, index: 0 }, disk);
    return read({ ...answer, status: answer.status ?? 200 }, index++);
  };
  const clouds = await startClouds({ store });
  closing.push(clouds.close);
  return clouds;
};

const mounted = (keys: Record<string, string>): string => {
  const dir = mkdtempSync(join(root, 'secret-'));
  for (const [key, value] of Object.entries(keys)) writeFileSync(join(dir, key), value);
  return dir;
};

type From =
  | { readonly secret: Record<string, string> }
  | { readonly identity: WorkloadIdentity; readonly token: string };

const run = async (url: string, from: From, { endpoints }: Pick<Clouds, 'endpoints'>) => {
  const own = mkdtempSync(join(root, 'case-'));
  const target = join(own, 'disk.img');
  const access =
    'secret' in from
      ? { secretDir: mounted(from.secret), secretName: 'images' }
      : { workload: { identity: from.identity, tokenFile: join(mounted({ token: from.token }), 'token') } };
  const spec = TransferSpec.parse({
    mode: 'import',
    source: { type: 'http', url, ...access },
    target: { path: target, volumeMode: 'Filesystem', capacityBytes: 2 ** 24 },
    scratchDir: join(own, 'scratch'),
    limits: { retries: 2 },
    allowedAddresses: ['127.0.0.0/8'],
    clouds: endpoints,
  });
  const { signal } = new AbortController();
  const said: unknown[] = [];
  const report = await runTransfer(spec, {
    run: 'run-1',
    signal,
    send: (entry) => Promise.resolve(void said.push(entry)),
    log: (message, facts) => said.push(message, facts),
    wait: () => Promise.resolve(),
  });
  return { report, all: JSON.stringify([report, said]), bytes: () => readFileSync(target) };
};

const googleIdentity = (account?: string): WorkloadIdentity => ({
  cloud: 'google',
  provider,
  ...(account === undefined ? {} : { account }),
});
const azureIdentity: WorkloadIdentity = { cloud: 'azure', tenant, client };
const email = 'images@golden.iam.gserviceaccount.com';

interface Way {
  readonly cloud: 'googleStorage' | 'azureStorage';
  readonly from: (clouds: Clouds) => From | Promise<From>;
}
const byIdentity = (cloud: Way['cloud'], identity: WorkloadIdentity): Way => ({
  cloud,
  from: async ({ podToken }) => ({ identity, token: await podToken(audienceOf(identity)) }),
});
const ways: Readonly<Record<string, Way>> = {
  'the key file of a service account': {
    cloud: 'googleStorage',
    from: ({ google }) => ({ secret: { 'credentials.json': JSON.stringify(google.keyFile) } }),
  },
  'a workload identity of Google': byIdentity('googleStorage', googleIdentity()),
  'a workload identity that impersonates an account': byIdentity('googleStorage', googleIdentity(email)),
  'a shared access signature': {
    cloud: 'azureStorage',
    from: ({ azure }) => ({ secret: { sasToken: `?${azure.sas({ sp: 'r' })}\n` } }),
  },
  'a workload identity of Azure': byIdentity('azureStorage', azureIdentity),
};

const urlOf = ({ endpoints }: Clouds, cloud: Way['cloud']): string => `${endpoints[cloud]}/images/disk.raw`;

describe('an object of a cloud', () => {
  it.each(Object.entries(ways))('is fetched with %s, which nothing shows', async (_, { cloud, from }) => {
    const clouds = await serve();
    const { report, all, bytes } = await run(urlOf(clouds, cloud), await from(clouds), clouds);
    expect(report).toMatchObject({ outcome: 'succeeded' });
    expect(bytes().equals(disk)).toBe(true);
    expect(all).not.toMatch(/token-|sig=|PRIVATE KEY|eyJ/);
  });

  it.each(Object.entries(ways).filter(([name]) => !name.includes('signature')))(
    'is resumed where it was, when the token from %s is not valid any more',
    async (_, { cloud, from }) => {
      const clouds = await serve((answer, index) => {
        if (index !== 1) return answer;
        clouds.tokens.revoke();
        return { ...answer, cutAfter: 700_000 };
      });
      const { report, bytes } = await run(urlOf(clouds, cloud), await from(clouds), clouds);
      expect(report).toMatchObject({ outcome: 'succeeded' });
      expect(bytes().equals(disk)).toBe(true);
      expect(clouds.tokens.count()).toBeGreaterThan(0);
      const ranges = clouds.requests.map(({ request }) => request.headers.range).filter((range) => range !== undefined);
      expect(ranges.some((range) => !range.startsWith('bytes=0-'))).toBe(true);
    },
  );
});

const keyFile = ({ google }: Clouds, over: object): From => ({
  secret: { 'credentials.json': JSON.stringify({ ...google.keyFile, ...over }) },
});

describe('a credential of a cloud that cannot be used', () => {
  const other = 'projects/9/locations/global/workloadIdentityPools/pool/providers/other';
  const cases: Readonly<
    Record<string, { way: Way; code: string; says: RegExp; hides?: string; requests?: readonly string[] }>
  > = {
    'a Secret without its key': {
      way: { cloud: 'googleStorage', from: () => ({ secret: { accessKeyId: 'GOOG1', secretKey: 's3cret' } }) },
      code: 'InvalidSpec',
      says: /the Secret images needs the key credentials\.json.*HMAC/,
      hides: 's3cret',
      requests: [],
    },
    'a key that is no JSON': {
      way: { cloud: 'googleStorage', from: () => ({ secret: { 'credentials.json': '{"private_key": s3cret' } }) },
      code: 'InvalidSpec',
      says: /credentials\.json of the Secret images is not JSON/,
      hides: 's3cret',
      requests: [],
    },
    'a file of another kind': {
      way: { cloud: 'googleStorage', from: () => ({ secret: { 'credentials.json': '{"type":"authorized_user"}' } }) },
      code: 'InvalidSpec',
      says: /is not the key file of a service account \(type, client_email, private_key\)/,
      requests: [],
    },
    'a private key that is none': {
      way: { cloud: 'googleStorage', from: (clouds) => keyFile(clouds, { private_key: 's3cret' }) },
      code: 'InvalidSpec',
      says: /private_key of .* Secret images is not a private key in PEM form/,
      hides: 's3cret',
      requests: [],
    },
    'a file that names another token service': {
      way: { cloud: 'googleStorage', from: (clouds) => keyFile(clouds, { token_uri: 'https://evil.example/s3cret' }) },
      code: 'InvalidSpec',
      says: /names another token service/,
      hides: 's3cret',
      requests: [],
    },
    'an account that is gone': {
      way: { cloud: 'googleStorage', from: (clouds) => keyFile(clouds, { client_email: 'x@y.example' }) },
      code: 'SourceForbidden',
      says: /service account key in the Secret images is not accepted: 127\.0\.0\.1:\d+ answered 400 \(invalid_grant: Not a valid email/,
      requests: ['token'],
    },
    'an identity with a wrong audience': {
      way: {
        cloud: 'googleStorage',
        from: async ({ podToken }) => ({ identity: googleIdentity(), token: await podToken('https://kubernetes') }),
      },
      code: 'SourceForbidden',
      says: /workload identity of the pod is not accepted: .* \(invalid_grant: The audience/,
    },
    'a provider that does not exist': {
      way: byIdentity('googleStorage', { cloud: 'google', provider: other }),
      code: 'SourceForbidden',
      says: /\(invalid_target: /,
    },
    'an application that Azure does not know': {
      way: byIdentity('azureStorage', { ...azureIdentity, client: tenant }),
      code: 'SourceForbidden',
      says: new RegExp(`for the application ${tenant} is not accepted: .*AADSTS700016`),
      requests: ['login'],
    },
    'an identity of the other cloud': {
      way: byIdentity('googleStorage', azureIdentity),
      code: 'InvalidSpec',
      says: /a workload identity of Azure Blob Storage is sent only to that/,
      requests: [],
    },
    'a signature that has expired': {
      way: {
        cloud: 'azureStorage',
        from: ({ azure }) => ({ secret: { sasToken: azure.sas({ se: '2020-01-01T00:00:00Z' }) } }),
      },
      code: 'SourceForbidden',
      says: /shared access signature in the Secret images expired at 2020-01-01T00:00:00\.000Z: store a new one/,
      hides: 'sig=',
      requests: [],
    },
    'a signature for writing only': {
      way: { cloud: 'azureStorage', from: ({ azure }) => ({ secret: { sasToken: azure.sas({ sp: 'w' }) } }) },
      code: 'SourceForbidden',
      says: /does not permit to read/,
      requests: [],
    },
    'a signature that was changed': {
      way: {
        cloud: 'azureStorage',
        from: ({ azure }) => ({ secret: { sasToken: azure.sas().replace('sp=rwdl', 'sp=rwdlx') } }),
      },
      code: 'SourceForbidden',
      says: /answered 403 \(AuthenticationFailed: /,
      hides: 'sig=',
      requests: ['azure'],
    },
    'a text that is no signature': {
      way: { cloud: 'azureStorage', from: () => ({ secret: { sasToken: 's3cret' } }) },
      code: 'InvalidSpec',
      says: /is none: it needs sv and sig/,
      hides: 's3cret',
      requests: [],
    },
    'a Secret without a signature': {
      way: { cloud: 'azureStorage', from: () => ({ secret: { username: 'a', password: 's3cret' } }) },
      code: 'InvalidSpec',
      says: /the Secret images needs the key sasToken/,
      hides: 's3cret',
      requests: [],
    },
    'a Secret that is missing': {
      way: { cloud: 'googleStorage', from: () => ({ secret: {} }) },
      code: 'SourceForbidden',
      says: /Secret images of the source is missing.*credentials\.json/,
      requests: [],
    },
  };
  it.each(Object.entries(cases))('%s', async (_, { way, code, says, hides = 's3cret', requests }) => {
    const clouds = await serve();
    const { report, all } = await run(urlOf(clouds, way.cloud), await way.from(clouds), clouds);
    expect(report).toMatchObject({ outcome: 'failed', reason: code, message: expect.stringMatching(says) });
    const asked = clouds.requests.map(({ service }) => service);
    expect([all.includes(hides), asked]).toEqual([false, requests ?? asked]);
  });

  it('is not sent to another server, by its URL or by a redirect', async () => {
    const origin = await startOrigin((request) => fileAnswer(request, disk));
    closing.push(() => origin.close());
    const clouds = await serve(() => ({ status: 302, headers: { location: `${origin.url}/disk.raw` } }));
    const from = keyFile(clouds, {});
    expect((await run(`${origin.url}/disk.raw`, from, clouds)).report).toMatchObject({ reason: 'InvalidSpec' });
    expect(clouds.requests).toEqual([]);
    expect((await run(urlOf(clouds, 'googleStorage'), from, clouds)).report).toMatchObject({ outcome: 'succeeded' });
    expect(origin.requests.map(({ headers }) => headers.authorization).filter((one) => one !== undefined)).toEqual([]);
  });
});
