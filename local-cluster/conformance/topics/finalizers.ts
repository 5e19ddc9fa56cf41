// Finalizers: a deletion that waits.
import { deepStrictEqual, match, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, changed, type JsonValue, textAt } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  get,
  jsonPatch,
  mergePatch,
  pod,
} from '#local-cluster/conformance/topics/objects.ts';

const heldMap = async (t: CaseContext): Promise<{ path: string; deleted: JsonValue }> => {
  const ns = await t.namespace();
  await create(t, core(ns, 'configmaps'), configMap('a', { k: 'v' }, { finalizers: ['example.com/hold'] }));
  const path = core(ns, 'configmaps', 'a');
  t.cleanup(() => mergePatch(t, path, { metadata: { finalizers: null } }));
  const answer = expectStatus(await t.call('DELETE', path), 200);
  return { path, deleted: answer.body };
};

export const finalizers: Topic = {
  topic: 'finalizers',
  cases: {
    'a delete sets the deletion timestamp of an object with a finalizer': async (t) => {
      const { deleted, path } = await heldMap(t);
      match(textAt(deleted, 'metadata.deletionTimestamp'), /Z$/);
      strictEqual(at(deleted, 'metadata.deletionGracePeriodSeconds'), 0);
      t.same('answer', deleted);
      strictEqual(at(await get(t, path), 'data.k'), 'v');
    },
    'a second delete changes nothing': async (t) => {
      const { deleted, path } = await heldMap(t);
      const again = expectStatus(await t.call('DELETE', path), 200);
      strictEqual(at(again.body, 'metadata.deletionTimestamp'), at(deleted, 'metadata.deletionTimestamp'));
      strictEqual(at(again.body, 'metadata.resourceVersion'), at(deleted, 'metadata.resourceVersion'));
    },
    'the object is removed with its last finalizer': async (t) => {
      const { path } = await heldMap(t);
      const answer = await jsonPatch(t, path, [{ op: 'remove', path: '/metadata/finalizers' }]);
      t.same('answer', expectStatus(answer, 200).body);
      expectStatus(await t.call('GET', path), 404);
    },
    'a replace without finalizers removes it too': async (t) => {
      const { path, deleted } = await heldMap(t);
      const body = changed(deleted, (copy) => delete (copy['metadata'] as Record<string, unknown>)['finalizers']);
      expectStatus(await t.call('PUT', path, { body }), 200);
      expectStatus(await t.call('GET', path), 404);
    },
    'a watch returns the deletion timestamp, then the deletion': async (t) => {
      const ns = await t.namespace();
      const created = await create(
        t,
        core(ns, 'configmaps'),
        configMap('a', undefined, { finalizers: ['example.com/hold'] }),
      );
      const path = core(ns, 'configmaps', 'a');
      const events = await t.watch(
        `${core(ns, 'configmaps')}?watch=true&resourceVersion=${textAt(created, 'metadata.resourceVersion')}`,
      );
      await t.call('DELETE', path);
      await mergePatch(t, path, { metadata: { finalizers: null } });
      const seen = [await events.next(), await events.next()];
      deepStrictEqual(
        seen.map(({ type }) => type),
        ['MODIFIED', 'DELETED'],
      );
      t.same('end', seen[1]?.object);
    },
    'other fields can change during the deletion': async (t) => {
      const { path } = await heldMap(t);
      strictEqual(at((await mergePatch(t, path, { data: { k: 'w' } })).body, 'data.k'), 'w');
    },
    'no finalizer can be added during the deletion': async (t) => {
      const { path } = await heldMap(t);
      const answer = await mergePatch(t, path, { metadata: { finalizers: ['example.com/hold', 'example.com/new'] } });
      t.same('answer', failureOf(expectStatus(answer, 422)));
    },
    'the deletion timestamp cannot be removed': async (t) => {
      const { path, deleted } = await heldMap(t);
      const answer = await mergePatch(t, path, { metadata: { deletionTimestamp: null } });
      t.same('answer', failureOf(answer));
      strictEqual(at(await get(t, path), 'metadata.deletionTimestamp'), at(deleted, 'metadata.deletionTimestamp'));
    },
    'the name of an object that is being deleted is still in use': async (t) => {
      const { path } = await heldMap(t);
      const answer = await t.call('POST', path.replace(/\/a$/, ''), { body: configMap('a') });
      t.same('answer', failureOf(expectStatus(answer, 409)));
    },
    'the deletion of a custom resource increments its generation': async (t) => {
      const widgets = await createWidgets(t);
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a', { spec: {} }, { finalizers: ['example.com/hold'] }));
      const path = widgets.path(ns, 'a');
      t.cleanup(() => mergePatch(t, path, { metadata: { finalizers: null } }));
      t.same('answer', expectStatus(await t.call('DELETE', path), 200).body);
    },
    'the finalizer of a custom object needs no domain': async (t) => {
      const widgets = await createWidgets(t);
      const ns = await t.namespace();
      const post = (name: string, finalizer: string) =>
        t.call('POST', widgets.path(ns), { body: widgets.widget(name, {}, { finalizers: [finalizer] }) });
      t.cleanup(() => mergePatch(t, widgets.path(ns, 'a'), { metadata: { finalizers: null } }));
      expectStatus(await post('a', 'longhorn.io'), 201);
      expectStatus(await mergePatch(t, widgets.path(ns, 'a'), { metadata: { finalizers: ['plain'] } }), 200);
      expectStatus(await post('b', 'a b'), 422);
    },
    'an unscheduled pod is deleted at once, a scheduled one after a grace period': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'pods'), pod('pending'));
      expectStatus(await t.call('DELETE', core(ns, 'pods', 'pending')), 200);
      expectStatus(await t.call('GET', core(ns, 'pods', 'pending')), 404);
      await create(t, core(ns, 'pods'), pod('placed', { nodeName: 'node-1' }));
      const marked = expectStatus(await t.call('DELETE', core(ns, 'pods', 'placed')), 200);
      strictEqual(at(marked.body, 'metadata.deletionGracePeriodSeconds'), 30);
      expectStatus(await t.call('DELETE', `${core(ns, 'pods', 'placed')}?gracePeriodSeconds=0`), 200);
      expectStatus(await t.call('GET', core(ns, 'pods', 'placed')), 404);
    },
  },
};
