import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { Topic, Answer } from '#local-cluster/conformance/suite/case.ts';
import { at, changed, itemsAt, textAt } from '#local-cluster/conformance/suite/json.ts';
import {
  apply,
  configMap,
  core,
  expectStatus,
  failureOf,
  get,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';
import { managers, applied, mapPath } from '#local-cluster/conformance/topics/apply/support.ts';

export const ownership: Topic['cases'] = {
  'apply creates a missing object': async (t) => {
    const answer = await apply(t, await mapPath(t), configMap('a', { k: 'v' }));
    t.same('object', expectStatus(answer, 201).body);
  },
  'a repeated apply changes nothing': async (t) => {
    const path = await mapPath(t);
    const first = await applied(t, path, configMap('a', { k: 'v' }));
    const second = expectStatus(await apply(t, path, configMap('a', { k: 'v' })), 200);
    deepStrictEqual(second.body, first.body);
  },
  'a field that its only owner omits is removed': async (t) => {
    const path = await mapPath(t);
    await applied(t, path, configMap('a', { k: 'v', l: 'w' }, { labels: { x: 'y' } }));
    const answer = await applied(t, path, configMap('a', { k: 'v' }));
    t.same('object', answer.body);
  },
  'a field of another manager is a conflict that names the manager': async (t) => {
    const path = await mapPath(t);
    await applied(t, path, configMap('a', { k: 'v', l: 'v' }), 'fieldManager=one');
    const answer = await apply(t, path, configMap('a', { k: 'w', l: 'w' }), 'fieldManager=two');
    t.same('answer', failureOf(expectStatus(answer, 409)));
  },
  'a field written by an update is a conflict too': async (t) => {
    const path = await mapPath(t);
    await applied(t, path, configMap('a', { k: 'v' }), 'fieldManager=one');
    expectStatus(await mergePatch(t, `${path}?fieldManager=writer`, { data: { k: 'w' } }), 200);
    const answer = await apply(t, path, configMap('a', { k: 'v' }), 'fieldManager=one');
    t.same('answer', failureOf(expectStatus(answer, 409)));
  },
  'force takes a field over': async (t) => {
    const path = await mapPath(t);
    await applied(t, path, configMap('a', { k: 'v', l: 'v' }), 'fieldManager=one');
    const forced = await applied(t, path, configMap('a', { k: 'w' }), 'fieldManager=two&force=true');
    t.same('object', forced.body);
    // Fields that the first manager no longer owns are not removed when it omits them.
    const later = await applied(t, path, configMap('a', { l: 'v' }), 'fieldManager=one');
    deepStrictEqual(at(later.body, 'data'), { k: 'w', l: 'v' });
  },
  'a field with several owners of the same value is kept until the last owner omits it': async (t) => {
    const path = await mapPath(t);
    await applied(t, path, configMap('a', { k: 'v' }), 'fieldManager=one');
    await applied(t, path, configMap('a', { k: 'v' }), 'fieldManager=two');
    strictEqual(managers(await get(t, path)), 'one/Apply two/Apply');
    const one = await applied(t, path, configMap('a'), 'fieldManager=one');
    strictEqual(at(one.body, 'data.k'), 'v');
    const two = await applied(t, path, configMap('a'), 'fieldManager=two');
    t.same('nobody is left', two.body);
  },
  'apply needs a field manager': async (t) => {
    const answer = await apply(t, await mapPath(t), configMap('a'), '');
    t.same('answer', failureOf(expectStatus(answer, 422)));
  },
  'force is only allowed for apply': async (t) => {
    const path = await mapPath(t);
    await applied(t, path, configMap('a'));
    t.same('answer', failureOf(expectStatus(await mergePatch(t, `${path}?force=true`, { data: {} }), 422)));
  },
  'apply rejects managed fields, other names and other kinds': async (t) => {
    const path = await mapPath(t);
    t.same(
      'managed fields',
      failureOf(
        await apply(
          t,
          path,
          configMap('a', undefined, { managedFields: [{ manager: 'x', operation: 'Apply', apiVersion: 'v1' }] }),
        ),
      ),
    );
    t.same('other name', failureOf(await apply(t, path, configMap('b'))));
    t.same('other kind', failureOf(await apply(t, path, { ...configMap('a'), kind: 'Secret' })));
    t.same('no kind', failureOf(await apply(t, path, { metadata: { name: 'a' } })));
  },
  'apply with an old version conflicts': async (t) => {
    const path = await mapPath(t);
    await applied(t, path, configMap('a'));
    const answer = await apply(t, path, configMap('a', { k: 'v' }, { resourceVersion: '1' }));
    t.same('answer', failureOf(expectStatus(answer, 409)));
  },
  'apply takes YAML': async (t) => {
    const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n';
    const options = { text, contentType: 'application/apply-patch+yaml' };
    const answer = await t.call('PATCH', `${await mapPath(t)}?fieldManager=tester`, options);
    strictEqual(at(expectStatus(answer, 201).body, 'data.k'), 'v');
  },
  'an update after an apply owns the fields that it changes': async (t) => {
    const path = await mapPath(t);
    const created = await applied(t, path, configMap('a', { k: 'v', l: 'v' }), 'fieldManager=one');
    const body = changed(created.body, (copy) => (copy['data'] = { k: 'w', l: 'v', m: 'n' }));
    const answer = await t.call('PUT', `${path}?fieldManager=writer`, { body });
    t.same('object', expectStatus(answer, 200).body);
  },
  'the manager of a write without one is the first part of the user agent': async (t) => {
    const path = core(await t.namespace(), 'configmaps');
    const answer = await t.call('POST', path, {
      body: configMap('a', { k: 'v' }),
      headers: { 'user-agent': 'thing/2.0 (x)' },
    });
    strictEqual(at(answer.body, 'metadata.managedFields.0.manager'), 'thing');
  },
  'a manager with a name that is too long is rejected': async (t) => {
    const answer = await t.call('POST', `${core(await t.namespace(), 'configmaps')}?fieldManager=${'x'.repeat(129)}`, {
      body: configMap('a'),
    });
    t.same('answer', failureOf(expectStatus(answer, 422)));
  },
  'the time of an entry changes only when its fields do': async (t) => {
    const path = await mapPath(t);
    const timeOf = (answer: Answer, manager: string): string => {
      const entries = itemsAt(answer.body, 'metadata.managedFields');
      return textAt(
        entries.find((entry) => at(entry, 'manager') === manager),
        'time',
      );
    };
    const first = await applied(t, path, configMap('a', { k: 'v' }), 'fieldManager=one');
    await new Promise((resolve) => setTimeout(resolve, 1100));
    const second = await applied(t, path, configMap('a', { l: 'w' }), 'fieldManager=two');
    strictEqual(timeOf(second, 'one'), timeOf(first, 'one'));
    ok(timeOf(second, 'two') > timeOf(second, 'one'));
  },
};
