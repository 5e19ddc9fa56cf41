import { beforeAll, describe, expect, it } from 'vitest';
import { createApp, withStores } from '#functions/import-object/app.ts';
import { withCaller } from '#shared/runtime/caller.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { type Issuer, createIssuer } from '#test/support/issuer.ts';

const answering = (status: number) => ({ fetch: () => new Response(null, { status }) });
const plain = () => new Request('http://import-object/', { method: 'POST', body: '{}' });
const event = (headers: Record<string, string> = {}) =>
  new Request('http://import-object/', { method: 'POST', headers: { 'ce-specversion': '1.0', ...headers } });

describe('import-object with authentication of callers', () => {
  it('accepts plain notifications with the token shared with stores, and authenticates all other callers', async () => {
    const app = withStores(answering(204), answering(401), 'shared');
    expect([(await app.fetch(plain())).status, (await app.fetch(event())).status]).toEqual([204, 401]);
  });

  it('accepts an event with the token, and authenticates the sender of an event with another one', async () => {
    const app = withStores(answering(204), answering(401), 'shared');
    const answers = ['Bearer shared', 'Bearer guessed', 'shared'].map(async (authorization) =>
      app.fetch(event({ authorization })),
    );
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([204, 401, 401]);
  });

  it('authenticates every caller when no token is set', async () => {
    const app = withStores(answering(204), answering(401), undefined);
    expect([(await app.fetch(plain())).status, (await app.fetch(event())).status]).toEqual([401, 401]);
  });
});

/** The table of shared/object-import/README.md. */
describe('any caller of import-object', () => {
  const audience = 'serving.knative.dev/service/bullion-system/import-object';
  const trigger = 'import-object-objects-oidc-eventing.knative.dev-trigger';
  let issuer: Issuer;
  beforeAll(async () => {
    issuer = await createIssuer();
  });

  /** As combined by the entry point. Without rules, every object is ignored: an accepted request is answered with 204. */
  const statusOf = async (set: { readonly token: boolean; readonly oidc: boolean }, request: Request) => {
    const kube = createMemoryKube();
    const openStore = () => Promise.reject(new Error('no rule is about this object'));
    const token = set.token ? 'shared' : undefined;
    const app = createApp({ kube, rules: [], openStore, now: Date.now, log: silentLogger, token });
    const rules = { audience, subjects: [`system:serviceaccount:bullion-system:${trigger}`] };
    const discover = async () => issuer.keys;
    const asked = withCaller(app, set.oidc ? rules : undefined, { discover, log: silentLogger });
    return (await withStores(app, asked, token).fetch(request)).status;
  };
  const post = (kind: 'plain' | 'event', authorization: string | undefined) =>
    new Request('http://import-object/', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(authorization === undefined ? {} : { authorization }),
        ...(kind === 'plain'
          ? {}
          : { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/', 'ce-type': 'dev.bullion.object.changed' }),
      },
      body: JSON.stringify(kind === 'plain' ? { Records: [] } : { bucket: 'images', key: 'a.img' }),
    });

  const neither = { token: false, oidc: false };
  const token = { token: true, oidc: false };
  const oidc = { token: false, oidc: true };
  const both = { token: true, oidc: true };

  it.each([
    ['neither', neither, { plain: [204, 204, 204], event: [204, 204, 204] }],
    ['NOTIFICATION_TOKEN', token, { plain: [401, 204, 401], event: [204, 204, 204] }],
    ['oidc', oidc, { plain: [401, 401, 204], event: [401, 401, 204] }],
    ['both', both, { plain: [401, 204, 401], event: [401, 204, 204] }],
  ] as const)('shows nothing, the token of stores, or that of a Trigger, where %s is set', async (_, set, expected) => {
    const shown = [undefined, 'Bearer shared', `Bearer ${await issuer.tokenOf(trigger, audience)}`];
    for (const kind of ['plain', 'event'] as const) {
      const statuses: number[] = [];
      for (const authorization of shown) statuses.push(await statusOf(set, post(kind, authorization)));
      expect({ kind, statuses }).toEqual({ kind, statuses: expected[kind] });
    }
  });
});
