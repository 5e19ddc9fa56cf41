import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { at, itemsAt } from '#local-cluster/conformance/suite/json.ts';
import { create, expectStatus, failureOf, get, grouped } from '#local-cluster/conformance/topics/objects.ts';
import { as, rbac, grant, review, configMapRule } from '#local-cluster/conformance/topics/authorization/support.ts';

export const accessReviews: Topic['cases'] = {
  'an access review answers for any user': async (t) => {
    const ns = await grant(t, 'jane', [configMapRule('get')]);
    const yes = await review(t, 'jane', { namespace: ns, verb: 'get', resource: 'configmaps', name: 'x' });
    t.same('yes', yes);
    t.same('no', await review(t, 'jane', { namespace: ns, verb: 'delete', resource: 'configmaps' }));
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const nothing = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec: { user: 'x' } };
    t.same('no attributes', failureOf(await t.call('POST', path, { body: nothing })));
    const whole = await create(t, path, {
      ...nothing,
      spec: { user: 'x', groups: ['system:masters'], nonResourceAttributes: { path: '/metrics', verb: 'get' } },
    });
    strictEqual(at(whole, 'status.allowed'), true);
    t.same('whole', whole);
  },
  'a review in a namespace must name that namespace': async (t) => {
    const ns = await grant(t, 'jane', [configMapRule('get')]);
    const post = (namespace: string) =>
      t.call('POST', grouped('authorization.k8s.io/v1', ns, 'localsubjectaccessreviews'), {
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'LocalSubjectAccessReview',
          metadata: { namespace: ns },
          spec: { user: `jane-${t.id}`, resourceAttributes: { namespace, verb: 'get', resource: 'configmaps' } },
        },
      });
    strictEqual(at(expectStatus(await post(ns), 201).body, 'status.allowed'), true);
    t.same('other', failureOf(await post('default')));
  },
  'every user can query their own permissions': async (t) => {
    const ns = await grant(t, 'jane', [configMapRule('get', 'list')]);
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { namespace: ns, verb: 'list', resource: 'configmaps' } },
    };
    const headers = { ...as(t, 'jane'), 'impersonate-group': 'system:authenticated' };
    const answer = await t.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { body, headers });
    t.same('answer', expectStatus(answer, 201).body);
    const rules = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: ns } };
    const asked = await t.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
      body: rules,
      headers,
    });
    const listed = itemsAt(expectStatus(asked, 201).body, 'status.resourceRules');
    ok(
      listed.some(
        (entry) =>
          JSON.stringify(at(entry, 'resources')) === '["configmaps"]' &&
          JSON.stringify(at(entry, 'verbs')) === '["get","list"]',
      ),
    );
  },
  'the default roles exist': async (t) => {
    for (const name of ['cluster-admin', 'admin', 'edit', 'view', 'system:discovery', 'system:public-info-viewer']) {
      strictEqual(at(await get(t, `/apis/${rbac}/clusterroles/${name}`), 'kind'), 'ClusterRole');
    }
    t.same('cluster-admin', at(await get(t, `/apis/${rbac}/clusterroles/cluster-admin`), 'rules'));
    deepStrictEqual(at(await get(t, `/apis/${rbac}/clusterrolebindings/cluster-admin`), 'subjects'), [
      { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:masters' },
    ]);
  },
  'authenticated users may use discovery, anonymous users may read version and health': async (t) => {
    const headers = { ...as(t, 'jane'), 'impersonate-group': 'system:authenticated' };
    for (const path of ['/api', '/apis', '/openapi/v3', '/version'])
      expectStatus(await t.call('GET', path, { headers }), 200);
    for (const path of ['/healthz', '/livez', '/readyz', '/version'])
      expectStatus(await t.call('GET', path, { token: null }), 200);
    expectStatus(await t.call('GET', '/apis', { token: null }), 403);
  },
};
