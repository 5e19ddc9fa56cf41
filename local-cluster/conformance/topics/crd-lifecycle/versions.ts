import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { at, changed, itemsAt } from '#local-cluster/conformance/suite/json.ts';
import {
  conditionOf,
  crdPath,
  createWidgets,
  established,
  groupOf,
  served,
  widgetCrd,
} from '#local-cluster/conformance/topics/custom.ts';
import {
  create,
  eventually,
  eventuallyGone,
  expectStatus,
  failureOf,
  get,
  jsonPatch,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';
import { version } from '#local-cluster/conformance/topics/crd-lifecycle/support.ts';

export const versions: Topic['cases'] = {
  'an object can be read and written in every served version': async (t) => {
    const group = groupOf(t);
    const body = widgetCrd(t, {
      spec: {
        versions: [
          version('v1', { storage: true }),
          version('v2'),
          version('v1beta1', { deprecated: true }),
          version('v1alpha1', { served: false }),
        ],
      },
    });
    expectStatus(await t.call('POST', crdPath, { body }), 201);
    t.cleanup(() => t.call('DELETE', `${crdPath}/widgets.${group}`));
    await established(t, `widgets.${group}`);
    for (const name of ['v1', 'v2', 'v1beta1']) await served(t, `/apis/${group}/${name}/widgets`);
    const ns = await t.namespace();
    const path = (name: string): string => `/apis/${group}/${name}/namespaces/${ns}/widgets`;
    await create(t, path('v2'), { apiVersion: `${group}/v2`, kind: 'Widget', metadata: { name: 'a' }, size: 1 });
    const read = await get(t, `${path('v1')}/a`);
    t.same('as v1', read);
    const deprecated = expectStatus(await t.call('GET', `${path('v1beta1')}/a`), 200);
    t.same('warning', { warning: deprecated.headers['warning'], apiVersion: at(deprecated.body, 'apiVersion') });
    strictEqual((await t.call('GET', `${path('v1alpha1')}/a`)).status, 404);
    const mixed = await t.call('PUT', `${path('v1')}/a`, {
      body: changed(read, (copy) => (copy['apiVersion'] = `${group}/v2`)),
    });
    t.same('mixed', failureOf(mixed));
    const found = await eventually(
      'group',
      async () => (await t.call('GET', `/apis/${group}`)).body,
      (seen) => itemsAt(seen, 'versions').length === 3,
    );
    t.same('group', found);
  },
  'a version can be added and becomes served': async (t) => {
    const widgets = await createWidgets(t);
    const path = `${crdPath}/${widgets.crdName}`;
    expectStatus(await jsonPatch(t, path, [{ op: 'add', path: '/spec/versions/-', value: version('v2') }]), 200);
    await served(t, `/apis/${widgets.group}/v2/widgets`);
    strictEqual(at(await get(t, path), 'metadata.generation'), 2);
  },
  'a changed schema applies to later writes': async (t) => {
    const properties = { size: { type: 'integer' } };
    const widgets = await createWidgets(t, { properties });
    const ns = await t.namespace();
    const refused = () => t.call('POST', `${widgets.path(ns)}?dryRun=All`, { body: widgets.widget('a', { size: 11 }) });
    expectStatus(await refused(), 201);
    const limit = { op: 'add', path: '/spec/versions/0/schema/openAPIV3Schema/properties/size/maximum', value: 10 };
    expectStatus(await jsonPatch(t, `${crdPath}/${widgets.crdName}`, [limit]), 200);
    await eventually(
      'the limit holds',
      async () => (await refused()).status,
      (status) => status === 422,
    );
  },
  'scope and group are immutable': async (t) => {
    const widgets = await createWidgets(t);
    t.same('scope', failureOf(await mergePatch(t, `${crdPath}/${widgets.crdName}`, { spec: { scope: 'Cluster' } })));
  },
  'deleting a definition deletes its objects and stops serving them': async (t) => {
    const widgets = await createWidgets(t);
    const ns = await t.namespace();
    await create(t, widgets.path(ns), widgets.widget('a', {}, { finalizers: ['example.com/hold'] }));
    const path = `${crdPath}/${widgets.crdName}`;
    const answer = expectStatus(await t.call('DELETE', path), 200);
    deepStrictEqual(at(answer.body, 'metadata.finalizers'), ['customresourcecleanup.apiextensions.k8s.io']);
    await eventually(
      'the object is marked',
      () => get(t, widgets.path(ns, 'a')),
      (seen) => at(seen, 'metadata.deletionTimestamp') !== undefined,
    );
    const late = await t.call('POST', widgets.path(ns), { body: widgets.widget('b') });
    t.same('create while it ends', failureOf(late));
    const terminating = await eventually(
      'it says so',
      () => get(t, path),
      (crd) => at(conditionOf(crd, 'Terminating'), 'status') === 'True',
    );
    ok(terminating);
    await mergePatch(t, widgets.path(ns, 'a'), { metadata: { finalizers: null } });
    await eventuallyGone(t, path);
    await eventually(
      'it is not served',
      async () => (await t.call('GET', widgets.path(ns))).status,
      (status) => status === 404,
    );
    await eventually(
      'discovery forgets it',
      async () => (await t.call('GET', `/apis/${widgets.group}`)).status,
      (status) => status === 404,
    );
  },
  'a cluster-scoped kind has no namespace': async (t) => {
    const widgets = await createWidgets(t, { scope: 'Cluster' });
    const path = `/apis/${widgets.group}/v1/widgets`;
    const created = await create(t, path, widgets.widget('a'));
    strictEqual(at(created, 'metadata.namespace'), undefined);
    strictEqual((await t.call('GET', widgets.path('default', 'a'))).status, 404);
  },
  'openapi includes a new kind': async (t) => {
    const properties = {
      spec: {
        type: 'object',
        description: 'What is wanted.',
        properties: { size: { type: 'integer', description: 'How big.' } },
      },
    };
    const widgets = await createWidgets(t, { properties });
    const path = `/openapi/v3/apis/${widgets.group}/v1`;
    const read = async () => (await t.call('GET', path)).body;
    const document = await eventually('openapi', read, (body) => at(body, 'components.schemas') !== undefined);
    const name = `com.example.${t.id}.v1.Widget`;
    const schema = at(document, ['components', 'schemas', name]);
    t.same('spec', at(schema, 'properties.spec'));
    t.same('kind', at(schema, 'x-kubernetes-group-version-kind'));
    ok(at(document, ['paths', `/apis/${widgets.group}/v1/namespaces/{namespace}/widgets/{name}`]) !== undefined);
  },
};
