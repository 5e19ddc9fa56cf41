// JSON, merge and strategic-merge patches.
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#test/conformance/suite/case.ts';
import { at } from '#test/conformance/suite/json.ts';
import { createWidgets } from '#test/conformance/topics/custom.ts';
import {
  type Body,
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  jsonPatch,
  mergePatch,
  pod,
  strategicPatch,
} from '#test/conformance/topics/objects.ts';

const createMap = async (t: CaseContext, data: Body = { a: '1', b: '2' }): Promise<string> => {
  const ns = await t.namespace();
  await create(t, core(ns, 'configmaps'), configMap('a', data));
  return core(ns, 'configmaps', 'a');
};

const createPod = async (t: CaseContext, spec: Body = {}): Promise<string> => {
  const ns = await t.namespace();
  await create(t, core(ns, 'pods'), pod('a', spec));
  return core(ns, 'pods', 'a');
};

export const patch: Topic = {
  topic: 'patch',
  cases: {
    'every JSON patch operation works': async (t) => {
      const path = await createMap(t);
      const answer = await jsonPatch(t, path, [
        { op: 'test', path: '/data/a', value: '1' },
        { op: 'add', path: '/data/c', value: '3' },
        { op: 'copy', from: '/data/a', path: '/data/d' },
        { op: 'move', from: '/data/b', path: '/data/e' },
        { op: 'replace', path: '/data/a', value: '0' },
        { op: 'add', path: '/metadata/labels', value: { 'x/y': 'z' } },
        { op: 'replace', path: '/metadata/labels/x~1y', value: 'zz' },
        { op: 'remove', path: '/data/c' },
      ]);
      deepStrictEqual(at(expectStatus(answer, 200).body, 'data'), { a: '0', d: '1', e: '2' });
      deepStrictEqual(at(answer.body, 'metadata.labels'), { 'x/y': 'zz' });
    },
    'a JSON patch that cannot be carried out is invalid': async (t) => {
      const path = await createMap(t);
      const patches = {
        'failed test': [{ op: 'test', path: '/data/a', value: '9' }],
        'remove of nothing': [{ op: 'remove', path: '/data/none' }],
        'replace of nothing': [{ op: 'replace', path: '/data/none', value: 'x' }],
        'add below nothing': [{ op: 'add', path: '/nothing/none', value: 'x' }],
      };
      for (const [label, operations] of Object.entries(patches)) {
        const answer = await jsonPatch(t, path, operations);
        // Replacing nothing adds it, as the server's patch library has it.
        t.same(label, answer.status === 200 ? { status: 200, data: at(answer.body, 'data') } : failureOf(answer));
      }
    },
    'a JSON patch that is none is a bad request': async (t) => {
      const path = await createMap(t);
      const answer = await jsonPatch(t, path, { op: 'remove' });
      strictEqual(at(expectStatus(answer, 400).body, 'reason'), 'BadRequest');
    },
    'a JSON patch is carried out whole or not at all': async (t) => {
      const path = await createMap(t);
      await jsonPatch(t, path, [
        { op: 'add', path: '/data/c', value: '3' },
        { op: 'test', path: '/data/a', value: '9' },
      ]);
      deepStrictEqual(at((await t.call('GET', path)).body, 'data'), { a: '1', b: '2' });
    },
    'lists are patched by index and at the end': async (t) => {
      const widgets = await createWidgets(t);
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a', { spec: { list: [1, 2, 3] } }));
      const answer = await jsonPatch(t, widgets.path(ns, 'a'), [
        { op: 'add', path: '/spec/list/-', value: 4 },
        { op: 'add', path: '/spec/list/0', value: 0 },
        { op: 'remove', path: '/spec/list/1' },
      ]);
      deepStrictEqual(at(expectStatus(answer, 200).body, 'spec.list'), [0, 2, 3, 4]);
    },
    'a merge patch sets, replaces and removes': async (t) => {
      const path = await createMap(t);
      const answer = await mergePatch(t, path, { data: { a: null, b: '3', c: '4' }, metadata: { labels: { x: 'y' } } });
      deepStrictEqual(at(expectStatus(answer, 200).body, 'data'), { b: '3', c: '4' });
      deepStrictEqual(at(answer.body, 'metadata.labels'), { x: 'y' });
    },
    'a merge patch replaces lists whole': async (t) => {
      const widgets = await createWidgets(t);
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a', { spec: { list: [1, 2], map: { x: 1 } } }));
      const answer = await mergePatch(t, widgets.path(ns, 'a'), { spec: { list: [3], map: { y: 2 } } });
      deepStrictEqual(at(answer.body, 'spec'), { list: [3], map: { x: 1, y: 2 } });
    },
    'a patch with an old version conflicts, one without never does': async (t) => {
      const path = await createMap(t);
      const answer = await mergePatch(t, path, { metadata: { resourceVersion: '1' }, data: { a: 'x' } });
      t.same('answer', failureOf(expectStatus(answer, 409)));
      const all = await Promise.all(
        ['1', '2', '3', '4', '5'].map((key) => mergePatch(t, path, { data: { [key]: key } })),
      );
      deepStrictEqual(
        all.map(({ status }) => status),
        [200, 200, 200, 200, 200],
      );
      deepStrictEqual(Object.keys(at((await t.call('GET', path)).body, 'data') as object).length, 7);
    },
    'a patch that changes nothing keeps the version': async (t) => {
      const path = await createMap(t);
      const before = at((await t.call('GET', path)).body, 'metadata.resourceVersion');
      const answer = await mergePatch(t, path, { data: { a: '1' } });
      strictEqual(at(answer.body, 'metadata.resourceVersion'), before);
    },
    'name, namespace and uid cannot be patched': async (t) => {
      const path = await createMap(t);
      t.same('name', failureOf(await mergePatch(t, path, { metadata: { name: 'b' } })));
      t.same('namespace', failureOf(await mergePatch(t, path, { metadata: { namespace: 'other' } })));
      t.same(
        'uid',
        failureOf(await mergePatch(t, path, { metadata: { uid: '11111111-1111-4111-8111-111111111111' } })),
      );
    },
    'a patch of what is not there is not found': async (t) => {
      const answer = await mergePatch(t, core(await t.namespace(), 'configmaps', 'a'), { data: { a: 'x' } });
      t.same('answer', failureOf(expectStatus(answer, 404)));
    },
    'a patch that makes an object invalid is refused with its fields': async (t) => {
      const path = await createMap(t);
      t.same(
        'label',
        failureOf(expectStatus(await mergePatch(t, path, { metadata: { labels: { 'a b': 'c' } } }), 422)),
      );
      t.same('type', failureOf(expectStatus(await mergePatch(t, path, { data: 'text' }), 422)));
      expectStatus(await mergePatch(t, path, { metadata: { labels: { a: 1 } } }), 422);
    },
    'a strategic patch merges lists by their key': async (t) => {
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
    'a strategic patch can delete, replace and order': async (t) => {
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
      const env = (answer: { body: Parameters<typeof at>[0] }) =>
        at(answer.body, 'spec.template.spec.containers.0.env');
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
    'a strategic patch merges finalizers and owner references': async (t) => {
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
    'a custom resource takes no strategic patch': async (t) => {
      const widgets = await createWidgets(t);
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a'));
      t.same('answer', failureOf(expectStatus(await strategicPatch(t, widgets.path(ns, 'a'), { spec: {} }), 415)));
    },
  },
};
