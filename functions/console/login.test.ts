// Login at an issuer: authorization code with PKCE, in one browser and in time.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { oidcOptions } from '#shared/console/oidc.ts';
import { createConsoleWorld, origin } from '#test/support/console.ts';

const issuer = 'https://login.example/realm';
const settings = { oidcIssuer: issuer, oidcClientId: 'console', oidcScopes: 'openid groups', consoleUrl: origin };

interface Fake {
  readonly name?: string;
  readonly nonce?: string;
  readonly refuses?: boolean;
}

const tokenWith = (claims: object): string =>
  ['e30', Buffer.from(JSON.stringify(claims)).toString('base64url'), 'sig'].join('.');

/** An issuer that remembers what it was asked, and gives a token for the verifier that belongs to the challenge. */
const anIssuer = ({ name = issuer, nonce, refuses = false }: Fake = {}) => {
  let asked = new URLSearchParams();
  const fetch = async (url: string, init: RequestInit = {}): Promise<Response> => {
    if (url === `${issuer}/.well-known/openid-configuration`)
      return Response.json({
        issuer: name,
        authorization_endpoint: `${issuer}/auth?x=1`,
        token_endpoint: `${issuer}/token`,
      });
    const body = new URLSearchParams(String(init.body as URLSearchParams));
    const isProven =
      createHash('sha256')
        .update(body.get('code_verifier') ?? '')
        .digest('base64url') === asked.get('code_challenge');
    const isAllowed = url === `${issuer}/token` && body.get('code') === 'the-code' && isProven && !refuses;
    if (!isAllowed || body.get('redirect_uri') !== asked.get('redirect_uri'))
      return Response.json({ error: 'invalid_grant', error_description: 'the-code' }, { status: 400 });
    return Response.json({ id_token: tokenWith({ sub: 'rita', nonce: nonce ?? asked.get('nonce') }) });
  };
  return { fetch, authorize: (location: string) => (asked = new URL(location).searchParams) };
};

const aWorld = async (fake: Fake = {}) => {
  const { fetch, authorize } = anIssuer(fake);
  const world = await createConsoleWorld({ oidc: oidcOptions(settings, fetch) });
  const begin = async () => {
    const answer = await world.get('/login/oidc');
    const location = answer.headers.get('location') ?? '';
    return {
      answer,
      location,
      asked: authorize(location),
      cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '',
    };
  };
  const back = (query: Readonly<Record<string, string>>, cookie: string) =>
    world.app.request(`${origin}/login/callback?${new URLSearchParams(query).toString()}`, {
      headers: { host: 'console.example', cookie },
    });
  return { ...world, begin, back };
};

describe('a login at an issuer', () => {
  it('asks for a code with a challenge, and shows the API server the token that it gets for it', async () => {
    const { begin, back, shown, text } = await aWorld();
    expect(await text('/login')).toContain('<a class="button" href="/login/oidc">Log in with login.example</a>');
    const { answer, location, asked, cookie } = await begin();
    expect(answer.status).toBe(303);
    expect(location.startsWith(`${issuer}/auth?x=1&`)).toBe(true);
    expect(Object.fromEntries(asked)).toMatchObject({
      response_type: 'code',
      client_id: 'console',
      redirect_uri: `${origin}/login/callback`,
      scope: 'openid groups',
      code_challenge_method: 'S256',
    });
    expect(answer.headers.get('set-cookie')).toMatch(/; Path=\/login; HttpOnly; SameSite=Lax; Max-Age=600$/);
    expect(cookie).not.toContain(asked.get('state'));
    const came = await back({ code: 'the-code', state: asked.get('state')! }, cookie);
    expect(came.status).toBe(200);
    expect(came.headers.get('refresh')).toBe('0; url=/objects');
    expect(came.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^bullion_login=; .*Max-Age=0$/),
      expect.stringMatching(/^bullion_session=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict;/),
    ]);
    expect(shown.at(-1)).toMatchObject({ token: expect.stringContaining('.sig') });
  });

  it.each<[string, Fake, (state: string, cookie: string) => [Record<string, string>, string], RegExp]>([
    ['of another state', {}, (_, cookie) => [{ code: 'the-code', state: 'x' }, cookie], /belongs to another login/],
    [
      'of a state with as many characters that are not ASCII',
      {},
      (state, cookie) => [{ code: 'the-code', state: 'é'.repeat(state.length) }, cookie],
      /belongs to another login/,
    ],
    ['in another browser', {}, (state) => [{ code: 'the-code', state }, ''], /was not begun in this browser/],
    [
      'with a code of somebody else',
      {},
      (state, cookie) => [{ code: 'other', state }, cookie],
      /refused the login \(invalid_grant\)/,
    ],
    [
      'that the issuer refused',
      {},
      (state, cookie) => [{ error: 'access_denied', state }, cookie],
      /refused the login \(access_denied\)/,
    ],
    [
      'with a token for another login',
      { nonce: 'x' },
      (state, cookie) => [{ code: 'the-code', state }, cookie],
      /the token belongs to another login/,
    ],
  ])('ends without a session: %s', async (_, fake, answer, words) => {
    const { begin, back, shown } = await aWorld(fake);
    const { asked, cookie } = await begin();
    const before = shown.length;
    const came = await back(...answer(asked.get('state')!, cookie));
    expect(came.status).toBe(401);
    expect(await came.text()).toMatch(words);
    expect(came.headers.getSetCookie().filter((one) => one.startsWith('bullion_session'))).toEqual([]);
    expect(shown).toHaveLength(before);
  });

  it('ends with its time, and its cookie is no session', async () => {
    const { begin, back, clock, app } = await aWorld();
    const { asked, cookie } = await begin();
    const session = cookie.replace('bullion_login', 'bullion_session');
    expect(
      (await app.request(`${origin}/objects`, { headers: { host: 'console.example', cookie: session } })).status,
    ).toBe(303);
    clock.now += 601_000;
    expect((await back({ code: 'the-code', state: asked.get('state')! }, cookie)).status).toBe(401);
  });

  it('is not begun at an issuer with another name, nor offered without one', async () => {
    const { get } = await aWorld({ name: 'https://evil.example' });
    const answer = await get('/login/oidc');
    expect(answer.status).toBe(503);
    expect(await answer.text()).toMatch(/set OIDC_ISSUER to its own words/);
    const { text } = await createConsoleWorld();
    expect(await text('/login')).not.toContain('/login/oidc');
  });

  it('needs its settings together', () => {
    expect(oidcOptions({ oidcScopes: '' }, fetch)).toBeUndefined();
    expect(() => oidcOptions({ ...settings, consoleUrl: undefined }, fetch)).toThrow(
      'requires OIDC_CLIENT_ID and CONSOLE_URL',
    );
  });
});
