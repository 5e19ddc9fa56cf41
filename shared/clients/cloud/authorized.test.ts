// Tokens over time: shared, renewed before they end, and kept while their service does not answer.
import { describe, expect, it } from 'vitest';
import { createCloudClient } from '#shared/clients/cloud/authorized.ts';
import { CloudEndpoints, cloudOf } from '#shared/clients/cloud/endpoints.ts';
import { audienceOf, formatIdentity, parseIdentity } from '#shared/clients/cloud/identity.ts';
import type { HttpClient, HttpGet } from '#shared/clients/http/client.ts';
import { HttpFailure } from '#shared/clients/http/errors.ts';

const identity = parseIdentity('google:projects/1/locations/global/workloadIdentityPools/pool/providers/cluster');
const clouds = CloudEndpoints.parse({});
const file = new URL('https://storage.googleapis.com/images/disk');

const respond = (status: number, body: object = {}): Awaited<ReturnType<HttpClient['get']>> => ({
  status,
  headers: {},
  body: (async function* text() {
    yield Buffer.from(JSON.stringify(body));
  })(),
  pour: () => Promise.resolve(),
  discard: () => {},
});

const setup = (tokens: (count: number) => ReturnType<HttpClient['get']>, refuses: readonly string[] = []) => {
  let now = 1_000_000;
  let asked = 0;
  const sent: HttpGet[] = [];
  const close = () => Promise.resolve();
  const asks: HttpClient = { get: () => tokens(++asked), close };
  const store: HttpClient = {
    get: (call) => {
      sent.push(call);
      const isRefused = refuses.includes(call.headers?.['authorization'] ?? '');
      return Promise.resolve(respond(isRefused ? 401 : 200));
    },
    close,
  };
  const access = { identity, readPodToken: () => Promise.resolve('pod'), use: 'read' } as const;
  const client = createCloudClient(store, file, access, { asks, now: () => now, clouds });
  const get = async () => (await client.get({ url: file })).status;
  return {
    get,
    pass: (ms: number) => (now += ms),
    asked: () => asked,
    shown: () => sent.map(({ headers }) => headers?.['authorization']),
  };
};

const numbered = (count: number) => Promise.resolve(respond(200, { access_token: `t${count}`, expires_in: 3600 }));

describe('the tokens of a cloud', () => {
  it('are asked for once by requests at the same time, and kept', async () => {
    const { get, asked, shown } = setup(numbered);
    await Promise.all([get(), get(), get()]);
    await get();
    expect([asked(), ...shown()]).toEqual([1, ...Array.from({ length: 4 }, () => 'Bearer t1')]);
  });

  it('are renewed before they end', async () => {
    const { get, pass, shown } = setup(numbered);
    await get();
    pass(3600_000 - 60_001);
    await get();
    pass(1);
    await get();
    expect(shown()).toEqual(['Bearer t1', 'Bearer t1', 'Bearer t2']);
  });

  it('are kept to their end if their service does not answer, and not longer', async () => {
    const { get, pass, shown } = setup((count) =>
      count === 1 ? numbered(1) : Promise.reject(new HttpFailure('Unreachable', 'down')),
    );
    await get();
    pass(3600_000 - 30_000);
    await get();
    expect(shown()).toEqual(['Bearer t1', 'Bearer t1']);
    pass(30_000);
    await expect(get()).rejects.toMatchObject({ code: 'Unreachable', retryable: true });
  });

  it('are renewed once if the store refuses them, and the second refusal is the answer', async () => {
    const { get, asked, shown } = setup(numbered, ['Bearer t1']);
    expect(await get()).toBe(200);
    expect(shown()).toEqual(['Bearer t1', 'Bearer t2']);
    const refused = setup(numbered, ['Bearer t1', 'Bearer t2']);
    expect([await refused.get(), refused.asked(), asked()]).toEqual([401, 2, 2]);
  });

  it.each<[answer: Parameters<typeof respond>, fault: object]>([
    [[400, { error: 'invalid_grant' }], { code: 'CredentialsRefused', retryable: false }],
    [
      [403, { error: { status: 'PERMISSION_DENIED', message: 'no' } }],
      { message: expect.stringContaining('(PERMISSION_DENIED: no)') },
    ],
    [[503], { code: 'Unreachable', retryable: true }],
    [[429], { code: 'Unreachable', retryable: true }],
    [[200, { surprise: true }], { code: 'CredentialsRefused' }],
  ])('answer %j', async (answer, fault) => {
    const { get } = setup(() => Promise.resolve(respond(...answer)));
    await expect(get()).rejects.toMatchObject(fault);
  });
});

describe('the cloud of a URL', () => {
  it.each<[url: string, cloud: string | undefined]>([
    ['https://storage.googleapis.com/b/o', 'google'],
    ['https://b.storage.googleapis.com/o', 'google'],
    ['https://golden.blob.core.windows.net/c/b', 'azure'],
    ['http://storage.googleapis.com/b/o', undefined],
    ['https://storage.googleapis.com.evil.example/b/o', undefined],
    ['https://evilstorage.googleapis.com/b/o', undefined],
    ['https://storage.googleapis.com:8443/b/o', undefined],
    ['https://user@evil.example/storage.googleapis.com', undefined],
  ])('%s: %s', (url, cloud) => {
    expect(cloudOf(new URL(url), clouds)).toBe(cloud);
  });
});

const uuid = '11111111-2222-3333-4444-555555555555';
const pool = 'google:projects/1/locations/global/workloadIdentityPools/pool/providers/cluster';

describe('a workload identity', () => {
  it.each<[text: string, audience: string | undefined]>([
    [pool, 'https://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/cluster'],
    [`${pool},images@golden.iam.gserviceaccount.com`, `https://iam.googleapis.com/${pool.slice(7)}`],
    [`azure:${uuid}/${uuid}`, 'api://AzureADTokenExchange'],
    ['', undefined],
    ['azure:common/app', undefined],
    [`azure:${uuid}/../${uuid}`, undefined],
    ['google:https://kubernetes.default.svc', undefined],
    [`${pool}/../../x`, undefined],
    [`${pool},somebody@example.com`, undefined],
  ])('%s has the audience %s', (text, audience) => {
    const read = parseIdentity(text);
    expect(read && audienceOf(read)).toBe(audience);
    expect(read === undefined ? text : formatIdentity(read)).toBe(text);
  });
});
