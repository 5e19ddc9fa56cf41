import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { at } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  core,
  create,
  expectStatus,
  failureOf,
  jsonPatch,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';
import { createMap } from '#local-cluster/conformance/topics/patch/support.ts';

export const jsonAndMerge: Topic['cases'] = {
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
  'a JSON patch that cannot be applied is invalid': async (t) => {
    const path = await createMap(t);
    const patches = {
      'failed test': [{ op: 'test', path: '/data/a', value: '9' }],
      'remove of nothing': [{ op: 'remove', path: '/data/none' }],
      'replace of nothing': [{ op: 'replace', path: '/data/none', value: 'x' }],
      'add below nothing': [{ op: 'add', path: '/nothing/none', value: 'x' }],
    };
    for (const [label, operations] of Object.entries(patches)) {
      const answer = await jsonPatch(t, path, operations);
      // Replacing a missing value adds it, as in the server's patch library.
      t.same(label, answer.status === 200 ? { status: 200, data: at(answer.body, 'data') } : failureOf(answer));
    }
  },
  'a malformed JSON patch is a bad request': async (t) => {
    const path = await createMap(t);
    const answer = await jsonPatch(t, path, { op: 'remove' });
    strictEqual(at(expectStatus(answer, 400).body, 'reason'), 'BadRequest');
  },
  'a JSON patch is applied completely or not at all': async (t) => {
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
  'a merge patch replaces whole lists': async (t) => {
    const widgets = await createWidgets(t);
    const ns = await t.namespace();
    await create(t, widgets.path(ns), widgets.widget('a', { spec: { list: [1, 2], map: { x: 1 } } }));
    const answer = await mergePatch(t, widgets.path(ns, 'a'), { spec: { list: [3], map: { y: 2 } } });
    deepStrictEqual(at(answer.body, 'spec'), { list: [3], map: { x: 1, y: 2 } });
  },
  'a patch with an old version is a conflict, one without a version never is': async (t) => {
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
  'name, namespace and uid are immutable': async (t) => {
    const path = await createMap(t);
    t.same('name', failureOf(await mergePatch(t, path, { metadata: { name: 'b' } })));
    t.same('namespace', failureOf(await mergePatch(t, path, { metadata: { namespace: 'other' } })));
    t.same('uid', failureOf(await mergePatch(t, path, { metadata: { uid: '11111111-1111-4111-8111-111111111111' } })));
  },
  'a patch of a missing object is not found': async (t) => {
    const answer = await mergePatch(t, core(await t.namespace(), 'configmaps', 'a'), { data: { a: 'x' } });
    t.same('answer', failureOf(expectStatus(answer, 404)));
  },
  'a patch that makes an object invalid is rejected with its fields': async (t) => {
    const path = await createMap(t);
    t.same('label', failureOf(expectStatus(await mergePatch(t, path, { metadata: { labels: { 'a b': 'c' } } }), 422)));
    t.same('type', failureOf(expectStatus(await mergePatch(t, path, { data: 'text' }), 422)));
    expectStatus(await mergePatch(t, path, { metadata: { labels: { a: 1 } } }), 422);
  },
};
