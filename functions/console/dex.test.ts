// Login at a real issuer: dex (github.com/dexidp/dex), as users go through it. Needs DEX, the path of its program. Where kube-apiserver is at hand,
// too, it checks the tokens, and what they may see.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createRemoteJWKSet, customFetch, jwtVerify } from 'jose';
import { Agent, fetch as fetchBy } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { freePorts } from '#local-cluster/free-ports.ts';
import { type ControlPlaneFiles, ensureControlPlaneFiles } from '#local-cluster/real-api-server/certificates.ts';
import { type RealApiServer, startRealApiServer } from '#local-cluster/real-api-server/server.ts';
import { oidcOptions } from '#shared/console/oidc.ts';
import { type ConsoleDeps, createVisitors } from '#shared/console/visit.ts';
import { createConsoleWorld, origin } from '#test/support/console.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const program = env['DEX'];
const assets = findAssets(env);
const password = 'let me in';
const clientId = 'bullion-console';

/** Files of the control plane: dex has its certificate, too, because an API server trusts issuers only over HTTPS. */
const dataDir = temporaryDirectory();
let files: ControlPlaneFiles;
let dispatcher: Agent;
/** Of undici itself: the `fetch` of Node takes no agent of another version. */
const trusting = async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
  const answer = await fetchBy(url, { ...init, dispatcher } as never);
  const { status, headers } = answer;
  return new Response(await answer.arrayBuffer(), { status, headers: [...headers] });
};

const configurationOf = (issuer: string, { certificate, key }: ControlPlaneFiles): string =>
  JSON.stringify({
    issuer,
    storage: { type: 'memory' },
    web: { https: new URL(issuer).host, tlsCert: certificate, tlsKey: key },
    oauth2: { skipApprovalScreen: true },
    staticClients: [{ id: clientId, name: 'Bullion', public: true, redirectURIs: [`${origin}/login/callback`] }],
    connectors: [
      { type: 'mockPassword', id: 'people', name: 'People', config: { username: 'rita', password } },
      // The same person, as a member of the group authors.
      { type: 'mockCallback', id: 'authors', name: 'Authors' },
    ],
  });

/** What a browser keeps and follows while it is at the issuer; ends with the address that leads back to the console. */
const browse = async (location: string, fields: Readonly<Record<string, string>>): Promise<URL> => {
  const cookies = new Map<string, string>();
  let request: RequestInit = {};
  let at = new URL(location);
  for (let step = 0; step < 12; step += 1) {
    const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
    const answer = await trusting(at, { ...request, headers, redirect: 'manual' });
    for (const one of answer.headers.getSetCookie()) {
      const [pair = ''] = one.split(';');
      cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
    }
    const next = answer.headers.get('location');
    const page = await answer.text();
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
  trusting(`${issuer}/.well-known/openid-configuration`).then(
    ({ ok }) => ok,
    () => false,
  );

let issuer: string;
let dex: ChildProcess | undefined;
beforeAll(async () => {
  if (program === undefined) return;
  files = await ensureControlPlaneFiles(join(dataDir, 'pki'));
  dispatcher = new Agent({ connect: { ca: readFileSync(files.ca, 'utf8') } });
  const [port] = await freePorts(1);
  issuer = `https://127.0.0.1:${port}/dex`;
  const file = join(dataDir, 'dex.json');
  writeFileSync(file, configurationOf(issuer, files));
  dex = spawn(program, ['serve', file], { stdio: 'ignore' });
  while (dex.exitCode === null && !(await isServed(issuer))) await sleep(50);
}, 60_000);
afterAll(async () => {
  dex?.kill('SIGKILL');
  await dispatcher?.close();
});

/** A console, and a browser that was sent to one connector of the issuer. */
const leave = async (connector: 'people' | 'authors', over: Partial<ConsoleDeps> = {}) => {
  const settings = {
    oidcIssuer: issuer,
    oidcClientId: clientId,
    oidcScopes: 'openid email groups',
    consoleUrl: origin,
  };
  const world = await createConsoleWorld({ oidc: oidcOptions(settings, trusting), now: Date.now, ...over });
  const begun = await world.get('/login/oidc');
  const cookie = begun.headers.get('set-cookie')?.split(';')[0] ?? '';
  const ask = (url: string, cookie: string) =>
    world.app.request(new URL(url, origin).href, { headers: { host: new URL(origin).host, cookie } });
  const location = (begun.headers.get('location') ?? '').replace('/auth?', `/auth/${connector}?`);
  return { ...world, location, ask, back: (url: URL) => ask(url.href, cookie) };
};

describe.skipIf(program === undefined)('a login at dex', { timeout: 60_000 }, () => {
  it('gives the API server a token that the issuer signed for the console', async () => {
    const { location, back, shown } = await leave('people');
    const came = await back(await browse(location, { login: 'rita', password }));
    expect([came.status, came.headers.get('refresh')]).toEqual([200, '0; url=/objects']);
    const { token } = shown.at(-1) as { readonly token: string };
    const keys = createRemoteJWKSet(new URL(`${issuer}/keys`), { [customFetch]: trusting });
    const { payload } = await jwtVerify(token, keys, { issuer, audience: clientId });
    expect(payload['email']).toContain('@');
  });

  it('uses a code once', async () => {
    const { location, back } = await leave('people');
    const url = await browse(location, { login: 'rita', password });
    expect((await back(url)).status).toBe(200);
    const again = await back(url);
    expect([again.status, await again.text()]).toEqual([401, expect.stringContaining('refused the login (invalid_')]);
  });

  it('ends at the issuer with a wrong password', async () => {
    const { location } = await leave('people');
    await expect(browse(location, { login: 'rita', password: 'wrong' })).rejects.toThrow(/answered 401/);
  });
});

const rules = ['bullion.dev', 'cdi.kubevirt.io', 'harvesterhci.io', 'hypercloud.tmaxanc.com'].map((group) => ({
  apiGroups: [group],
  resources: ['*'],
  verbs: ['get', 'list', 'watch'],
}));
const rbac = 'rbac.authorization.k8s.io';

/** A namespace with an image, which `subject` may see. */
const grant = (namespace: string, subject: object): readonly object[] => [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
  {
    apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
    kind: 'VirtualMachineImage',
    metadata: { namespace, name: `image-of-${namespace}` },
    spec: { source: { http: 'https://downloads.example/disk.qcow2' } },
  },
  {
    apiVersion: `${rbac}/v1`,
    kind: 'RoleBinding',
    metadata: { namespace, name: 'viewers' },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'viewer' },
    subjects: [{ apiGroup: rbac, ...subject }],
  },
];

describe.skipIf(program === undefined || assets === undefined)(
  'kube-apiserver, which has the tokens of dex checked',
  { timeout: 120_000 },
  () => {
    let server: RealApiServer;
    beforeAll(async () => {
      const extraFlags = Object.entries({
        'issuer-url': issuer,
        'client-id': clientId,
        'ca-file': files.ca,
        'username-claim': 'email',
        'username-prefix': 'dex:',
        'groups-claim': 'groups',
        'groups-prefix': 'dex:',
      }).map(([name, value]) => `--oidc-${name}=${value}`);
      server = await startRealApiServer({ assetsDir: assets!, dataDir, durable: false, extraFlags });
      const kubectl = (...args: readonly string[]) =>
        promisify(execFile)('kubectl', [...args, '--kubeconfig', server.kubeconfigPath]);
      await kubectl('apply', '--server-side', '-k', join(import.meta.dirname, '../../infra/crds'));
      await kubectl('wait', '--for=condition=Established', 'crd', '--all');
      const items = [
        { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: 'viewer' }, rules },
        ...grant('mine', { kind: 'User', name: 'dex:kilgore@kilgore.trout' }),
        ...grant('ours', { kind: 'Group', name: 'dex:authors' }),
      ];
      writeFileSync(join(dataDir, 'objects.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
      await kubectl('apply', '--server-side', '-f', join(dataDir, 'objects.json'));
    }, 240_000);
    afterAll(() => server?.close());

    it.each([
      ['people', ['mine']],
      ['authors', ['mine', 'ours']],
    ] as const)('shows who logs in as one of the %s the images of %j alone', async (connector, allowed) => {
      const connect = createVisitors(server.kubeconfigPath);
      let pageOf: (namespace: string) => Promise<string>;
      const enter = async (): Promise<number> => {
        const { location, back, ask } = await leave(connector, { connect });
        const came = await back(await browse(location, { login: 'rita', password }));
        const cookie = came.headers
          .getSetCookie()
          .map((one) => one.split(';')[0])
          .join('; ');
        pageOf = async (namespace) => (await ask(`/objects?namespace=${namespace}`, cookie)).text();
        return came.status;
      };
      // The API server reads the keys of the issuer a moment after it is ready.
      await expect.poll(enter, { timeout: 60_000 }).toBe(200);
      for (const namespace of ['mine', 'ours'] as const) {
        const page = await pageOf!(namespace);
        expect(page).toContain('dex:kilgore@kilgore.trout');
        const found = page.includes(`image-of-${namespace}`) ? 'listed' : /You may not list/.exec(page)?.[0];
        const isAllowed = (allowed as readonly string[]).includes(namespace);
        expect([namespace, found]).toEqual([namespace, isAllowed ? 'listed' : 'You may not list']);
      }
    });
  },
);
