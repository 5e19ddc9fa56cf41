// Tokens, service accounts and the current user.
import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, type JsonValue, textAt } from '#local-cluster/conformance/suite/json.ts';
import {
  type Body,
  core,
  create,
  eventually,
  expectStatus,
  failureOf,
} from '#local-cluster/conformance/topics/objects.ts';

const createAccount = async (t: CaseContext, name = 'robot'): Promise<string> => {
  const ns = await t.namespace();
  await create(t, core(ns, 'serviceaccounts'), { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } });
  return core(ns, 'serviceaccounts', name);
};

const requestToken = async (t: CaseContext, account: string, spec: Body = {}): Promise<JsonValue> =>
  create(t, `${account}/token`, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec });

const whoIs = async (t: CaseContext, token: string): Promise<JsonValue> =>
  create2(
    t,
    '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    token,
  );

const create2 = async (t: CaseContext, path: string, body: Body, token: string): Promise<JsonValue> =>
  expectStatus(await t.call('POST', path, { body, token }), 201).body;

const review = async (t: CaseContext, spec: Body): Promise<JsonValue> =>
  create(t, '/apis/authentication.k8s.io/v1/tokenreviews', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec,
  });

/** Ids of a token differ in every run. */
const comparable = (status: JsonValue): unknown =>
  JSON.parse(JSON.stringify(status).replace(/JTI=[0-9a-f-]+/g, 'JTI=<uid>')) as unknown;

export const identity: Topic = {
  topic: 'identity',
  cases: {
    'a token of a service account can be requested and used': async (t) => {
      const account = await createAccount(t);
      const request = await requestToken(t, account, { expirationSeconds: 600 });
      const token = textAt(request, 'status.token');
      strictEqual(token.split('.').length, 3);
      t.same('request', { ...(request as object), status: undefined });
      ok(Date.parse(textAt(request, 'status.expirationTimestamp')) > Date.now());
      t.same('user', comparable(at(await whoIs(t, token), 'status')));
    },
    'the claims of a token contain the account, its namespace and the audience': async (t) => {
      const account = await createAccount(t);
      const token = textAt(
        await requestToken(t, account, { audiences: ['a', 'b'], expirationSeconds: 600 }),
        'status.token',
      );
      const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<
        string,
        unknown
      >;
      deepStrictEqual(claims['aud'], ['a', 'b']);
      strictEqual(claims['sub'], `system:serviceaccount:${await t.namespace()}:robot`);
      t.same('kubernetes', claims['kubernetes.io']);
      strictEqual(claims['iss'], 'https://kubernetes.default.svc');
    },
    'an invalid token request is rejected': async (t) => {
      const account = await createAccount(t);
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 10 } };
      t.same('too short', failureOf(await t.call('POST', `${account}/token`, { body })));
      const missing = await t.call('POST', `${account}-none/token`, { body: { ...body, spec: {} } });
      t.same('no account', failureOf(missing));
    },
    'a review returns the user of a token': async (t) => {
      const account = await createAccount(t);
      const token = textAt(await requestToken(t, account), 'status.token');
      t.same('known', comparable(at(await review(t, { token }), 'status')));
      const unknown = at(await review(t, { token: 'nonsense' }), 'status');
      strictEqual(at(unknown, 'authenticated') ?? false, false);
      ok(textAt(unknown, 'error') !== '');
    },
    'a token is valid only for its audience': async (t) => {
      const account = await createAccount(t);
      const token = textAt(await requestToken(t, account, { audiences: ['bucket'] }), 'status.token');
      strictEqual(at(await review(t, { token, audiences: ['bucket'] }), 'status.authenticated'), true);
      deepStrictEqual(at(await review(t, { token, audiences: ['bucket', 'x'] }), 'status.audiences'), ['bucket']);
      strictEqual(at(await review(t, { token }), 'status.authenticated') ?? false, false);
      expectStatus(await t.call('GET', '/api', { token }), 401);
    },
    'a token becomes invalid with its account': async (t) => {
      const account = await createAccount(t);
      const token = textAt(await requestToken(t, account), 'status.token');
      expectStatus(await t.call('GET', '/version', { token }), 200);
      await t.call('DELETE', account);
      await eventually(
        'the token is refused',
        async () => (await t.call('GET', '/version', { token })).status,
        (status) => status === 401,
      );
    },
    'a token bound to an object becomes invalid with it': async (t) => {
      const account = await createAccount(t);
      const ns = await t.namespace();
      await create(t, core(ns, 'secrets'), { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } });
      const boundObjectRef = { apiVersion: 'v1', kind: 'Secret', name: 's' };
      const token = textAt(await requestToken(t, account, { boundObjectRef }), 'status.token');
      expectStatus(await t.call('GET', '/version', { token }), 200);
      await t.call('DELETE', core(ns, 'secrets', 's'));
      await eventually(
        'the token is refused',
        async () => (await t.call('GET', '/version', { token })).status,
        (status) => status === 401,
      );
    },
    'a modified token is rejected': async (t) => {
      const account = await createAccount(t);
      const token = textAt(await requestToken(t, account), 'status.token');
      const [head = '', claims = '', signature = ''] = token.split('.');
      const forged = Buffer.from(Buffer.from(claims, 'base64url').toString().replace(':robot', ':admin')).toString(
        'base64url',
      );
      expectStatus(await t.call('GET', '/version', { token: `${head}.${forged}.${signature}` }), 401);
    },
    'the administrator and the anonymous user have names': async (t) => {
      t.same('administrator', at(await whoIs(t, t.server.token), 'status'));
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
      t.same(
        'nobody',
        failureOf(await t.call('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body, token: null })),
      );
    },
    'a user with the permission can impersonate another': async (t) => {
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
      const headers = { 'impersonate-user': 'jane', 'impersonate-group': 'devs', 'impersonate-extra-scopes': 'view' };
      const answer = await t.call('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body, headers });
      t.same('user', at(expectStatus(answer, 201).body, 'status'));
      const account = await createAccount(t);
      const token = textAt(await requestToken(t, account), 'status.token');
      t.same(
        'may not',
        failureOf(await t.call('GET', '/api/v1/namespaces', { token, headers: { 'impersonate-user': 'jane' } })),
      );
    },
  },
};
