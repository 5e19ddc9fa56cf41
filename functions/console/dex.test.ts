// Login at a real issuer: dex (github.com/dexidp/dex), as users go through it. Needs DEX, the path of its program.
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePorts } from '#local-cluster/free-ports.ts';
import { oidcOptions } from '#shared/console/oidc.ts';
import { createConsoleWorld, origin } from '#test/support/console.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const program = env['DEX'];
const password = 'let me in';
const clientId = 'bullion-console';

const configurationOf = (issuer: string): string =>
  JSON.stringify({
    issuer,
    storage: { type: 'memory' },
    web: { http: new URL(issuer).host },
    oauth2: { skipApprovalScreen: true },
    staticClients: [{ id: clientId, name: 'Bullion', public: true, redirectURIs: [`${origin}/login/callback`] }],
    connectors: [{ type: 'mockPassword', id: 'people', name: 'People', config: { username: 'rita', password } }],
  });

/** What a browser keeps and follows while it is at the issuer; ends with the address that leads back to the console. */
const browse = async (location: string, fields: Readonly<Record<string, string>>): Promise<URL> => {
  const cookies = new Map<string, string>();
  let request: RequestInit = {};
  let at = new URL(location);
  for (let step = 0; step < 12; step += 1) {
    const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
    // oxlint-disable no-await-in-loop
    const answer = await fetch(at, { ...request, headers, redirect: 'manual' });
    for (const one of answer.headers.getSetCookie()) {
      const [pair = ''] = one.split(';');
      cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
    }
    const next = answer.headers.get('location');
    const page = await answer.text();
    // oxlint-enable no-await-in-loop
    if (next === null) {
      const [, action] = /<form[^>]* action="([^"]*)"/.exec(page) ?? [];
      if (!answer.ok || request.method === 'POST') throw new Error(`${at.pathname} answered ${answer.status}: ${page}`);
      at = new URL((action ?? at.href).replaceAll('&amp;', '&'), at);
      request = { method: 'POST', body: new URLSearchParams(fields) };
    } else {
      at = new URL(next, at);
      request = {};
      if (at.origin === origin) return at;
    }
  }
  throw new Error(`the login does not end: ${at.href}`);
};

const isServed = (issuer: string): Promise<boolean> =>
  fetch(`${issuer}/.well-known/openid-configuration`).then(
    ({ ok }) => ok,
    () => false,
  );

describe.skipIf(program === undefined)('a login at dex', { timeout: 60_000 }, () => {
  let issuer: string;
  let dex: ChildProcess;
  beforeAll(async () => {
    const [port] = await freePorts(1);
    issuer = `http://127.0.0.1:${port}/dex`;
    const file = join(temporaryDirectory(), 'dex.json');
    writeFileSync(file, configurationOf(issuer));
    dex = spawn(program!, ['serve', file], { stdio: 'ignore' });
    while (dex.exitCode === null && !(await isServed(issuer))) await sleep(50);
  });
  afterAll(() => void dex?.kill('SIGKILL'));

  const aWorld = async () => {
    const settings = {
      oidcIssuer: issuer,
      oidcClientId: clientId,
      oidcScopes: 'openid email groups',
      consoleUrl: origin,
    };
    const world = await createConsoleWorld({ oidc: oidcOptions(settings, fetch), now: Date.now });
    const begun = await world.get('/login/oidc');
    const cookie = begun.headers.get('set-cookie')?.split(';')[0] ?? '';
    const back = (url: URL) => world.app.request(url.href, { headers: { host: new URL(origin).host, cookie } });
    return { ...world, location: begun.headers.get('location') ?? '', back };
  };

  it('gives the API server a token that the issuer signed for the console', async () => {
    const { location, back, shown } = await aWorld();
    const came = await back(await browse(location, { login: 'rita', password }));
    expect([came.status, came.headers.get('refresh')]).toEqual([200, '0; url=/objects']);
    const { token } = shown.at(-1) as { readonly token: string };
    const keys = createRemoteJWKSet(new URL(`${issuer}/keys`));
    const { payload } = await jwtVerify(token, keys, { issuer, audience: clientId });
    expect(payload['email']).toContain('@');
  });

  it('uses a code once', async () => {
    const { location, back } = await aWorld();
    const url = await browse(location, { login: 'rita', password });
    expect((await back(url)).status).toBe(200);
    const again = await back(url);
    expect([again.status, await again.text()]).toEqual([401, expect.stringContaining('refused the login (invalid_')]);
  });

  it('ends at the issuer with a wrong password', async () => {
    const { location } = await aWorld();
    await expect(browse(location, { login: 'rita', password: 'wrong' })).rejects.toThrow(/answered 401/);
  });
});
