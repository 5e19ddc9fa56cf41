import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { at } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  type Body,
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  mergePatch,
  strategicPatch,
} from '#local-cluster/conformance/topics/objects.ts';
import { createPod } from '#local-cluster/conformance/topics/patch/support.ts';

export const strategic: Topic['cases'] = {
  'a strategic merge patch merges lists by key': async (t) => {
    const path = await createPod(t, {
      containers: [
        { name: 'one', image: 'example.com/one' },
        { name: 'two', image: 'example.com/two' },
      ],
    });
    const answer = await strategicPatch(t, path, {
      spec: { containers: [{ name: 'two', image: 'example.com/new' }] },
    });
    strictEqual(at(expectStatus(answer, 200).body, 'spec.containers.0.image'), 'example.com/one');
    strictEqual(at(answer.body, 'spec.containers.1.image'), 'example.com/new');
  },
  'a strategic merge patch can delete, replace and order': async (t) => {
    const ns = await t.namespace();
    const template = {
      metadata: { labels: { app: 'a' } },
      spec: {
        restartPolicy: 'Never',
        volumes: [
          { name: 'v', emptyDir: {} },
          { name: 'w', emptyDir: {} },
        ],
        containers: [
          {
            name: 'main',
            image: 'example.com/main',
            env: [
              { name: 'A', value: '1' },
              { name: 'B', value: '2' },
              { name: 'C', value: '3' },
            ],
          },
        ],
      },
    };
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'd' },
      spec: {
        selector: { matchLabels: { app: 'a' } },
        template: { ...template, spec: { ...template.spec, restartPolicy: 'Always' } },
      },
    };
    await create(t, `/apis/apps/v1/namespaces/${ns}/deployments`, deployment);
    const path = `/apis/apps/v1/namespaces/${ns}/deployments/d`;
    const spec = (content: Body) => ({ spec: { template: { spec: content } } });
    const env = (answer: { body: Parameters<typeof at>[0] }) => at(answer.body, 'spec.template.spec.containers.0.env');
    const removed = await strategicPatch(
      t,
      path,
      spec({ containers: [{ name: 'main', env: [{ name: 'B', $patch: 'delete' }] }] }),
    );
    deepStrictEqual(env(expectStatus(removed, 200)), [
      { name: 'A', value: '1' },
      { name: 'C', value: '3' },
    ]);
    const ordered = await strategicPatch(
      t,
      path,
      spec({
        containers: [
          {
            name: 'main',
            '$setElementOrder/env': [{ name: 'C' }, { name: 'D' }, { name: 'A' }],
            env: [{ name: 'D', value: '4' }],
          },
        ],
      }),
    );
    deepStrictEqual(env(expectStatus(ordered, 200)), [
      { name: 'C', value: '3' },
      { name: 'D', value: '4' },
      { name: 'A', value: '1' },
    ]);
    const replaced = await strategicPatch(
      t,
      path,
      spec({ containers: [{ name: 'main', env: [{ $patch: 'replace' }, { name: 'Z', value: '9' }] }] }),
    );
    deepStrictEqual(env(expectStatus(replaced, 200)), [{ name: 'Z', value: '9' }]);
    const nulled = await strategicPatch(t, path, spec({ volumes: null }));
    strictEqual(at(expectStatus(nulled, 200).body, 'spec.template.spec.volumes'), undefined);
  },
  'a strategic merge patch merges finalizers and owner references': async (t) => {
    const ns = await t.namespace();
    const owner = (name: string, uid: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', name, uid });
    const first = owner('x', '11111111-1111-4111-8111-111111111111');
    const second = owner('y', '22222222-2222-4222-8222-222222222222');
    await create(
      t,
      core(ns, 'configmaps'),
      configMap('a', undefined, { finalizers: ['example.com/a'], ownerReferences: [first] }),
    );
    const path = core(ns, 'configmaps', 'a');
    t.cleanup(() => mergePatch(t, path, { metadata: { finalizers: null } }));
    const answer = await strategicPatch(t, path, {
      metadata: { finalizers: ['example.com/b'], ownerReferences: [second] },
    });
    // New entries come first.
    deepStrictEqual(at(expectStatus(answer, 200).body, 'metadata.finalizers'), ['example.com/b', 'example.com/a']);
    deepStrictEqual(at(answer.body, 'metadata.ownerReferences'), [second, first]);
    const removed = await strategicPatch(t, path, {
      metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/a'] },
    });
    deepStrictEqual(at(removed.body, 'metadata.finalizers'), ['example.com/b']);
  },
  'a custom resource does not support strategic merge patches': async (t) => {
    const widgets = await createWidgets(t);
    const ns = await t.namespace();
    await create(t, widgets.path(ns), widgets.widget('a'));
    t.same('answer', failureOf(expectStatus(await strategicPatch(t, widgets.path(ns, 'a'), { spec: {} }), 415)));
  },
};
