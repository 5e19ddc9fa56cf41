// The lifecycle of a namespace. Its deletion needs controllers.
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, changed } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  configMap,
  core,
  create,
  eventually,
  eventuallyGone,
  expectStatus,
  failureOf,
  get,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';

const pathOf = (name: string): string => `/api/v1/namespaces/${name}`;

/** A namespace whose deletion waits for the finalizer of one of its objects. */
const endingNamespace = async (t: CaseContext): Promise<string> => {
  const ns = await t.namespace();
  const held = core(ns, 'configmaps', 'held');
  await create(t, core(ns, 'configmaps'), configMap('held', {}, { finalizers: ['example.com/hold'] }));
  t.cleanup(() => mergePatch(t, held, { metadata: { finalizers: null } }));
  expectStatus(await t.call('DELETE', pathOf(ns)), 200);
  return ns;
};

export const namespaces: Topic = {
  topic: 'namespaces',
  cases: {
    'a new namespace is active, has a label with its name and the finalizer of its content': async (t) => {
      const ns = await t.namespace();
      t.same('namespace', await get(t, pathOf(ns)));
    },
    'the label with its name cannot be removed': async (t) => {
      const ns = await t.namespace();
      const answer = await mergePatch(t, pathOf(ns), { metadata: { labels: null } });
      deepStrictEqual(at(answer.body, 'metadata.labels'), { 'kubernetes.io/metadata.name': ns });
    },
    'a deleted namespace is removed with all of its content': async (t) => {
      const widgets = await createWidgets(t);
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a'));
      await create(t, widgets.path(ns), widgets.widget('a'));
      const answer = expectStatus(await t.call('DELETE', pathOf(ns)), 200);
      strictEqual(at(answer.body, 'status.phase'), 'Terminating');
      await eventuallyGone(t, pathOf(ns));
      expectStatus(await t.call('GET', core(ns, 'configmaps', 'a')), 404);
      expectStatus(await t.call('GET', widgets.path(ns, 'a')), 404);
    },
    'a namespace that is being deleted reports what it waits for': async (t) => {
      const ns = await endingNamespace(t);
      const seen = await eventually(
        'conditions',
        () => get(t, pathOf(ns)),
        (namespace) => at(namespace, 'status.conditions.4') !== undefined,
      );
      strictEqual(at(seen, 'status.phase'), 'Terminating');
      t.same('status', at(seen, 'status'));
      await mergePatch(t, core(ns, 'configmaps', 'held'), { metadata: { finalizers: null } });
      await eventuallyGone(t, pathOf(ns));
    },
    'nothing can be created in a namespace that is being deleted, existing objects can change': async (t) => {
      const ns = await endingNamespace(t);
      const answer = await t.call('POST', core(ns, 'configmaps'), { body: configMap('late') });
      t.same('answer', failureOf(expectStatus(answer, 403)));
      expectStatus(await mergePatch(t, core(ns, 'configmaps', 'held'), { data: { k: 'v' } }), 200);
    },
    'the name of a namespace that is being deleted is in use': async (t) => {
      const ns = await endingNamespace(t);
      const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ns } };
      t.same('answer', failureOf(expectStatus(await t.call('POST', '/api/v1/namespaces', { body }), 409)));
      t.same('second delete', failureOf(await t.call('DELETE', pathOf(ns))));
    },
    'the finalizers of its content are removed by a separate subresource': async (t) => {
      const ns = await t.namespace();
      const namespace = await get(t, pathOf(ns));
      const body = changed(namespace, (copy) => (copy['spec'] = { finalizers: ['kubernetes', 'example.com/mine'] }));
      expectStatus(await t.call('PUT', pathOf(ns), { body }), 200);
      deepStrictEqual(at(await get(t, pathOf(ns)), 'spec.finalizers'), ['kubernetes']);
      const fresh = await get(t, pathOf(ns));
      const more = changed(fresh, (copy) => (copy['spec'] = { finalizers: ['kubernetes', 'example.com/mine'] }));
      const answer = expectStatus(await t.call('PUT', `${pathOf(ns)}/finalize`, { body: more }), 200);
      deepStrictEqual(at(answer.body, 'spec.finalizers'), ['kubernetes', 'example.com/mine']);
      const less = changed(answer.body, (copy) => (copy['spec'] = { finalizers: ['kubernetes'] }));
      expectStatus(await t.call('PUT', `${pathOf(ns)}/finalize`, { body: less }), 200);
    },
    'system namespaces cannot be deleted': async (t) => {
      for (const name of ['default', 'kube-system', 'kube-public']) {
        t.same(name, failureOf(expectStatus(await t.call('DELETE', pathOf(name)), 403)));
      }
    },
    'namespaces cannot be deleted as a collection': async (t) => {
      t.same('answer', failureOf(await t.call('DELETE', '/api/v1/namespaces?labelSelector=none')));
    },
  },
};
