import { type CryptoKey, SignJWT, exportJWK, generateKeyPair } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Issuer, discoverIssuer, withCaller } from '#shared/runtime/caller.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { createLogger, silentLogger } from '#shared/runtime/log.ts';

const issuer = 'https://kubernetes.default.svc';
const audience = 'bullion-system/initialize';
const trigger = 'system:serviceaccount:bullion-system:initialize-objects-oidc-eventing.knative.dev-trigger';
const app = { fetch: () => new Response(null, { status: 204 }) };

interface Key {
  readonly privateKey: CryptoKey;
  readonly jwk: object;
  readonly kid: string;
}
let first: Key;
let second: Key;

const aKey = async (kid: string): Promise<Key> => {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  return { privateKey, kid, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' } };
};
const keysOf = (...keys: readonly Key[]) => ({ keys: keys.map(({ jwk }) => jwk) }) as Issuer['keys'];

beforeAll(async () => {
  first = await aKey('first');
  second = await aKey('second');
});

interface Claims {
  readonly iss?: string;
  readonly aud?: string;
  readonly sub?: string;
  readonly seconds?: number;
}

const aToken = ({ iss = issuer, aud = audience, sub = trigger, seconds = 3600 }: Claims = {}, key = first) =>
  new SignJWT({})
    .setProtectedHeader({ alg: 'RS256', kid: key.kid })
    .setIssuer(iss)
    .setAudience(aud)
    .setSubject(sub)
    .setExpirationTime(Math.floor(Date.now() / 1000) + seconds)
    .sign(key.privateKey);

const ask = async (token: string | undefined, discover = async () => ({ issuer, keys: keysOf(first) })) => {
  const guarded = withCaller(app, { audience, subjects: [trigger] }, { discover, log: silentLogger });
  const headers = token === undefined ? {} : { authorization: token };
  return guarded.fetch(new Request('http://f/', { method: 'POST', headers }));
};

describe('204', () => {
  it('accepts the account of a Trigger', async () => {
    expect((await ask(`Bearer ${await aToken()}`)).status).toBe(204);
  });

  it('checks nothing when nothing is configured', () => {
    expect(withCaller(app, undefined, { discover: () => Promise.reject(new Error('asked')), log: silentLogger })).toBe(
      app,
    );
  });

  it('accepts a key that is new at the API server', async () => {
    let asked = 0;
    let now = 0;
    const discover = async () => ({ issuer, keys: (asked += 1) === 1 ? keysOf(first) : keysOf(first, second) });
    const deps = { discover, log: silentLogger, now: () => now };
    const guarded = withCaller(app, { audience, subjects: [trigger] }, deps);
    const call = async (key: Key) => {
      const headers = { authorization: `Bearer ${await aToken({}, key)}` };
      return (await guarded.fetch(new Request('http://f/', { method: 'POST', headers }))).status;
    };
    expect(await call(first)).toBe(204);
    now += 60_000;
    expect(await call(second)).toBe(204);
    expect(asked).toBe(2);
  });
});

describe('401', () => {
  it.each([
    ['no token', undefined],
    ['another scheme', 'Basic eA=='],
    ['no JWT', 'Bearer x.y.z'],
  ])('rejects %s', async (_what, header) => {
    expect((await ask(header)).status).toBe(401);
  });

  it.each<[string, Claims]>([
    ['another audience', { aud: 'bullion-system/cron-tick' }],
    ['another issuer', { iss: 'https://elsewhere' }],
    ['what has expired', { seconds: -120 }],
  ])('rejects a token for %s', async (_what, claims) => {
    expect((await ask(`Bearer ${await aToken(claims)}`)).status).toBe(401);
  });

  it('rejects a token with an unknown key, and reads the keys at most every ten seconds meanwhile', async () => {
    let asked = 0;
    const discover = async () => ({ issuer, keys: ((asked += 1), keysOf(first)) });
    const guarded = withCaller(app, { audience, subjects: [trigger] }, { discover, log: silentLogger });
    for (let time = 0; time < 5; time += 1) {
      const headers = { authorization: `Bearer ${await aToken({}, second)}` };
      expect((await guarded.fetch(new Request('http://f/', { method: 'POST', headers }))).status).toBe(401);
    }
    expect(asked).toBe(1);
  });

  it('rejects an unsigned token', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const claims = { iss: issuer, aud: audience, sub: trigger, exp: 4_000_000_000 };
    expect((await ask(`Bearer ${part({ alg: 'none' })}.${part(claims)}.`)).status).toBe(401);
  });
});

it('403: rejects an account that is not allowed, and never logs a token', async () => {
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const token = await aToken({ sub: 'system:serviceaccount:default:default' });
  const deps = { discover: async () => ({ issuer, keys: keysOf(first) }), log };
  const guarded = withCaller(app, { audience, subjects: [trigger] }, deps);
  const request = new Request('http://f/', { method: 'POST', headers: { authorization: `Bearer ${token}` } });
  expect((await guarded.fetch(request)).status).toBe(403);
  expect(lines.join('')).toContain('default:default may not call');
  expect(lines.join('')).not.toContain(token.split('.')[1]);
});

it('503: requests another delivery while the keys are unavailable', async () => {
  const response = await ask(`Bearer ${await aToken()}`, () => Promise.reject(new Unavailable('the API is down')));
  expect(response.status).toBe(503);
  expect(response.headers.get('retry-after')).toBe('5');
});

describe('discoverIssuer', () => {
  it('reads issuer and keys of the API server', async () => {
    const answers: Record<string, unknown> = {
      '/.well-known/openid-configuration': { issuer },
      '/openid/v1/jwks': { keys: [] },
    };
    expect(await discoverIssuer({ raw: async <R>({ path }: { path: string }) => answers[path] as R })).toEqual({
      issuer,
      keys: { keys: [] },
    });
  });
});
