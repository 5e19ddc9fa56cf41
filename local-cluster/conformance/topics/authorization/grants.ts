import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { at } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  configMap,
  core,
  create,
  eventually,
  expectStatus,
  failureOf,
  grouped,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';
import {
  rbac,
  as,
  callAs,
  role,
  binding,
  userOf,
  grant,
  configMapRule,
} from '#local-cluster/conformance/topics/authorization/support.ts';

export const grants: Topic['cases'] = {
  'users may do only what is granted': async (t) => {
    const ns = await grant(t, 'jane', [configMapRule('get', 'list')]);
    await create(t, core(ns, 'configmaps'), configMap('a'));
    expectStatus(await callAs(t, 'jane', 'GET', core(ns, 'configmaps', 'a')), 200);
    expectStatus(await callAs(t, 'jane', 'GET', core(ns, 'configmaps')), 200);
    t.same(
      'create',
      failureOf(expectStatus(await callAs(t, 'jane', 'POST', core(ns, 'configmaps'), configMap('b')), 403)),
    );
    t.same('delete', failureOf(expectStatus(await callAs(t, 'jane', 'DELETE', core(ns, 'configmaps', 'a')), 403)));
    t.same(
      'watch',
      failureOf(expectStatus(await callAs(t, 'jane', 'GET', `${core(ns, 'configmaps')}?watch=true`), 403)),
    );
    t.same('other resource', failureOf(expectStatus(await callAs(t, 'jane', 'GET', core(ns, 'secrets')), 403)));
    t.same(
      'other namespace',
      failureOf(expectStatus(await callAs(t, 'jane', 'GET', core('default', 'configmaps')), 403)),
    );
    t.same('all namespaces', failureOf(expectStatus(await callAs(t, 'jane', 'GET', '/api/v1/configmaps'), 403)));
  },
  'resource names restrict a rule': async (t) => {
    const ns = await grant(t, 'jane', [{ ...configMapRule('get', 'list'), resourceNames: ['a'] }]);
    await create(t, core(ns, 'configmaps'), configMap('a'));
    await create(t, core(ns, 'configmaps'), configMap('b'));
    expectStatus(await callAs(t, 'jane', 'GET', core(ns, 'configmaps', 'a')), 200);
    t.same('other name', failureOf(expectStatus(await callAs(t, 'jane', 'GET', core(ns, 'configmaps', 'b')), 403)));
    expectStatus(await callAs(t, 'jane', 'GET', core(ns, 'configmaps')), 403);
    expectStatus(await callAs(t, 'jane', 'GET', `${core(ns, 'configmaps')}?fieldSelector=metadata.name%3Da`), 200);
  },
  'subresources are granted separately': async (t) => {
    const widgets = await createWidgets(t, { version: { subresources: { status: {} } } });
    const ns = await grant(t, 'jane', [
      { apiGroups: [widgets.group], resources: ['widgets/status'], verbs: ['patch'] },
    ]);
    await create(t, widgets.path(ns), widgets.widget('a'));
    const patch = (path: string) =>
      t.call('PATCH', path, {
        body: { status: {} },
        contentType: 'application/merge-patch+json',
        headers: as(t, 'jane'),
      });
    expectStatus(await patch(`${widgets.path(ns, 'a')}/status`), 200);
    t.same('object', failureOf(expectStatus(await patch(widgets.path(ns, 'a')), 403)));
  },
  'an apply that creates needs both patch and create': async (t) => {
    const ns = await grant(t, 'jane', [configMapRule('patch')]);
    const send = () =>
      t.call('PATCH', `${core(ns, 'configmaps', 'a')}?fieldManager=x`, {
        body: configMap('a'),
        contentType: 'application/apply-patch+yaml',
        headers: as(t, 'jane'),
      });
    const answer = await send();
    t.same('answer', failureOf(answer));
  },
  'a wildcard grants all': async (t) => {
    const ns = await grant(t, 'jane', [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]);
    expectStatus(await callAs(t, 'jane', 'POST', core(ns, 'configmaps'), configMap('a')), 201);
    expectStatus(await callAs(t, 'jane', 'GET', grouped('batch/v1', ns, 'jobs')), 200);
    expectStatus(await callAs(t, 'jane', 'GET', '/api/v1/nodes'), 403);
  },
  'a cluster role can be bound in a namespace or in all': async (t) => {
    const ns = await t.namespace();
    const path = `/apis/${rbac}/clusterroles`;
    await create(t, path, {
      apiVersion: rbac,
      kind: 'ClusterRole',
      metadata: { name: t.id },
      rules: [configMapRule('list'), { nonResourceURLs: ['/nothing'], verbs: ['get'] }],
    });
    t.cleanup(() => t.call('DELETE', `${path}/${t.id}`));
    await create(
      t,
      grouped(rbac, ns, 'rolebindings'),
      binding('b', { kind: 'ClusterRole', name: t.id }, [userOf(t, 'jane')]),
    );
    await eventually(
      'granted',
      async () => (await callAs(t, 'jane', 'GET', core(ns, 'configmaps'))).status,
      (status) => status === 200,
    );
    expectStatus(await callAs(t, 'jane', 'GET', '/api/v1/configmaps'), 403);
    const everywhere = {
      ...binding(t.id, { kind: 'ClusterRole', name: t.id }, [
        { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: `team-${t.id}` },
      ]),
      kind: 'ClusterRoleBinding',
    };
    await create(t, `/apis/${rbac}/clusterrolebindings`, everywhere);
    t.cleanup(() => t.call('DELETE', `/apis/${rbac}/clusterrolebindings/${t.id}`));
    const headers = { 'impersonate-user': 'joe', 'impersonate-group': `team-${t.id}` };
    await eventually(
      'granted',
      async () => (await t.call('GET', '/api/v1/configmaps?limit=1', { headers })).status,
      (status) => status === 200,
    );
    // The object of an access review need not exist.
    expectStatus(await t.call('GET', '/nothing', { headers }), 404);
  },
  'a service account is granted by name and namespace, or by its group': async (t) => {
    const ns = await t.namespace();
    await create(t, core(ns, 'serviceaccounts'), {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'robot' },
    });
    await create(t, grouped(rbac, ns, 'roles'), role('r', [configMapRule('list')]));
    await create(
      t,
      grouped(rbac, ns, 'rolebindings'),
      binding('b', { kind: 'Role', name: 'r' }, [{ kind: 'ServiceAccount', name: 'robot', namespace: ns }]),
    );
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
    const token = String(
      at(await create(t, `${core(ns, 'serviceaccounts', 'robot')}/token`, request), 'status.token') as string,
    );
    await eventually(
      'granted',
      async () => (await t.call('GET', core(ns, 'configmaps'), { token })).status,
      (status) => status === 200,
    );
    t.same('refused', failureOf(expectStatus(await t.call('GET', core(ns, 'secrets'), { token }), 403)));
  },
  'users cannot grant more than they have': async (t) => {
    const ns = await grant(t, 'jane', [
      { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: ['create', 'update'] },
      configMapRule('get'),
    ]);
    const mine = await callAs(t, 'jane', 'POST', grouped(rbac, ns, 'roles'), role('mine', [configMapRule('get')]));
    expectStatus(mine, 201);
    const more = await callAs(
      t,
      'jane',
      'POST',
      grouped(rbac, ns, 'roles'),
      role('more', [configMapRule('get', 'delete')]),
    );
    t.same('role', failureOf(expectStatus(more, 403)));
    const bound = await callAs(
      t,
      'jane',
      'POST',
      grouped(rbac, ns, 'rolebindings'),
      binding('more', { kind: 'ClusterRole', name: 'cluster-admin' }, [userOf(t, 'jane')]),
    );
    expectStatus(bound, 403);
  },
  'the role of a binding is immutable': async (t) => {
    const ns = await t.namespace();
    const path = grouped(rbac, ns, 'rolebindings');
    const body = binding('b', { kind: 'Role', name: 'one' }, [userOf(t, 'jane')]);
    await create(t, path, body);
    t.same('answer', failureOf(expectStatus(await mergePatch(t, `${path}/b`, { roleRef: { name: 'two' } }), 422)));
  },
  'invalid roles are rejected': async (t) => {
    const ns = await t.namespace();
    t.same(
      'no verbs',
      failureOf(
        await t.call('POST', grouped(rbac, ns, 'roles'), {
          body: role('r', [{ apiGroups: [''], resources: ['pods'], verbs: [] }]),
        }),
      ),
    );
    t.same(
      'paths in a namespace',
      failureOf(
        await t.call('POST', grouped(rbac, ns, 'roles'), {
          body: role('r', [{ nonResourceURLs: ['/x'], verbs: ['get'] }]),
        }),
      ),
    );
    t.same(
      'no subject kind',
      failureOf(
        await t.call('POST', grouped(rbac, ns, 'rolebindings'), {
          body: binding('b', { kind: 'Role', name: 'r' }, [{ kind: 'Robot', name: 'x' }]),
        }),
      ),
    );
  },
};
