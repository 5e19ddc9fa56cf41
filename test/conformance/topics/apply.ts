// Server-side apply and managed fields.
import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { Answer, CaseContext, Topic } from '#test/conformance/suite/case.ts';
import { at, changed, itemsAt, type JsonValue, textAt } from '#test/conformance/suite/json.ts';
import { createWidgets } from '#test/conformance/topics/custom.ts';
import {
  apply,
  type Body,
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  get,
  mergePatch,
} from '#test/conformance/topics/objects.ts';

const managers = (object: JsonValue): string =>
  itemsAt(object, 'metadata.managedFields')
    .map((entry) => `${textAt(entry, 'manager')}/${textAt(entry, 'operation')}`)
    .toSorted()
    .join(' ');

const applied = async (t: CaseContext, path: string, body: Body, query?: string): Promise<Answer> => {
  const answer = await apply(t, path, body, query);
  ok(answer.status < 300, JSON.stringify(answer.body));
  return answer;
};

const mapPath = async (t: CaseContext): Promise<string> => core(await t.namespace(), 'configmaps', 'a');

const service = (ports: readonly Body[]): Body => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'a' },
  spec: { selector: { app: 'a' }, ports },
});

export const applyTopic: Topic = {
  topic: 'apply',
  cases: {
    'apply creates what is not there': async (t) => {
      const answer = await apply(t, await mapPath(t), configMap('a', { k: 'v' }));
      t.same('object', expectStatus(answer, 201).body);
    },
    'the same apply again changes nothing': async (t) => {
      const path = await mapPath(t);
      const first = await applied(t, path, configMap('a', { k: 'v' }));
      const second = expectStatus(await apply(t, path, configMap('a', { k: 'v' })), 200);
      deepStrictEqual(second.body, first.body);
    },
    'a field left out by its only manager goes': async (t) => {
      const path = await mapPath(t);
      await applied(t, path, configMap('a', { k: 'v', l: 'w' }, { labels: { x: 'y' } }));
      const answer = await applied(t, path, configMap('a', { k: 'v' }));
      t.same('object', answer.body);
    },
    'a field of another manager conflicts and names him': async (t) => {
      const path = await mapPath(t);
      await applied(t, path, configMap('a', { k: 'v', l: 'v' }), 'fieldManager=one');
      const answer = await apply(t, path, configMap('a', { k: 'w', l: 'w' }), 'fieldManager=two');
      t.same('answer', failureOf(expectStatus(answer, 409)));
    },
    'a field written by update conflicts too': async (t) => {
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
      // What the first one no longer owns is not removed when it leaves it out.
      const later = await applied(t, path, configMap('a', { l: 'v' }), 'fieldManager=one');
      deepStrictEqual(at(later.body, 'data'), { k: 'w', l: 'v' });
    },
    'a field is shared by managers who agree and stays until the last leaves it': async (t) => {
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
    'force is for apply alone': async (t) => {
      const path = await mapPath(t);
      await applied(t, path, configMap('a'));
      t.same('answer', failureOf(expectStatus(await mergePatch(t, `${path}?force=true`, { data: {} }), 422)));
    },
    'apply refuses managed fields, other names and other kinds': async (t) => {
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
    'update after apply splits the fields between both': async (t) => {
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
    'a manager with too long a name is refused': async (t) => {
      const answer = await t.call(
        'POST',
        `${core(await t.namespace(), 'configmaps')}?fieldManager=${'x'.repeat(129)}`,
        { body: configMap('a') },
      );
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
    'managed fields can be reset': async (t) => {
      const path = await mapPath(t);
      await applied(t, path, configMap('a', { k: 'v' }));
      const answer = await mergePatch(t, path, { metadata: { managedFields: [{}] } });
      strictEqual(at(expectStatus(answer, 200).body, 'metadata.managedFields'), undefined);
    },
    'fields that were there before anybody managed them are kept by whoever comes first': async (t) => {
      const path = await mapPath(t);
      await applied(t, path, configMap('a', { k: 'v', l: 'v' }));
      await mergePatch(t, path, { metadata: { managedFields: [{}] } });
      const answer = await applied(t, path, configMap('a', { k: 'w' }), 'fieldManager=two&force=true');
      t.same('object', answer.body);
    },
    'list entries are owned by their key': async (t) => {
      const ns = await t.namespace();
      const path = core(ns, 'services', 'a');
      await applied(t, path, service([{ name: 'x', port: 80 }]), 'fieldManager=one');
      const both = await applied(t, path, service([{ name: 'y', port: 81 }]), 'fieldManager=two');
      deepStrictEqual(
        itemsAt(both.body, 'spec.ports').map((port) => at(port, 'name')),
        ['x', 'y'],
      );
      const less = await applied(t, path, service([]), 'fieldManager=one');
      deepStrictEqual(
        itemsAt(less.body, 'spec.ports').map((port) => at(port, 'name')),
        ['y'],
      );
      t.same('managed fields', { managedFields: at(less.body, 'metadata.managedFields') });
    },
    'finalizers are a set that several managers share': async (t) => {
      const path = await mapPath(t);
      t.cleanup(() => mergePatch(t, path, { metadata: { finalizers: null } }));
      await applied(t, path, configMap('a', undefined, { finalizers: ['example.com/one'] }), 'fieldManager=one');
      const both = await applied(
        t,
        path,
        configMap('a', undefined, { finalizers: ['example.com/two'] }),
        'fieldManager=two',
      );
      deepStrictEqual(at(both.body, 'metadata.finalizers'), ['example.com/one', 'example.com/two']);
      const less = await applied(t, path, configMap('a'), 'fieldManager=one');
      deepStrictEqual(at(less.body, 'metadata.finalizers'), ['example.com/two']);
    },
    'list and map types of a schema decide how its fields are owned': async (t) => {
      const item = {
        type: 'object',
        required: ['id'],
        properties: { id: { type: 'string' }, value: { type: 'integer' } },
      };
      const properties = {
        spec: {
          type: 'object',
          properties: {
            byKey: {
              type: 'array',
              'x-kubernetes-list-type': 'map',
              'x-kubernetes-list-map-keys': ['id'],
              items: item,
            },
            set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
            atomicList: { type: 'array', items: { type: 'string' } },
            atomicMap: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: { type: 'string' } },
            open: { type: 'object', additionalProperties: { type: 'string' } },
          },
        },
      };
      const widgets = await createWidgets(t, { properties });
      const path = widgets.path(await t.namespace(), 'a');
      const one = {
        byKey: [{ id: 'x', value: 1 }],
        set: ['p'],
        atomicList: ['l'],
        atomicMap: { m: '1' },
        open: { o: '1' },
      };
      t.same('one', (await applied(t, path, widgets.widget('a', { spec: one }), 'fieldManager=one')).body);
      const two = { byKey: [{ id: 'y', value: 2 }], set: ['q'], open: { p: '2' } };
      t.same('two', (await applied(t, path, widgets.widget('a', { spec: two }), 'fieldManager=two')).body);
      const atomic = { atomicList: ['other'], atomicMap: { n: '2' }, byKey: [{ id: 'x', value: 9 }] };
      t.same('conflict', failureOf(await apply(t, path, widgets.widget('a', { spec: atomic }), 'fieldManager=two')));
      t.same(
        'only the set is left to one',
        (await applied(t, path, widgets.widget('a', { spec: { set: ['p'] } }), 'fieldManager=one')).body,
      );
    },
    'a field the schema does not know cannot be applied': async (t) => {
      const widgets = await createWidgets(t, {
        properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } },
      });
      const path = widgets.path(await t.namespace(), 'a');
      t.same('unknown', failureOf(await apply(t, path, widgets.widget('a', { spec: { nothing: 1 } }))));
      t.same('wrong type', failureOf(await apply(t, path, widgets.widget('a', { spec: { size: 'big' } }))));
      const builtin = await apply(t, core(await t.namespace(), 'configmaps', 'a'), { ...configMap('a'), nothing: 1 });
      t.same('builtin', failureOf(builtin));
      const typed = await apply(t, core(await t.namespace(), 'configmaps', 'a'), { ...configMap('a'), data: 'text' });
      t.same('builtin of the wrong type', failureOf(typed));
    },
    'status is applied through its subresource': async (t) => {
      const properties = {
        spec: { type: 'object', properties: { size: { type: 'integer' } } },
        status: { type: 'object', properties: { phase: { type: 'string' } } },
      };
      const widgets = await createWidgets(t, { properties, version: { subresources: { status: {} } } });
      const path = widgets.path(await t.namespace(), 'a');
      await applied(
        t,
        path,
        widgets.widget('a', { spec: { size: 1 }, status: { phase: 'ignored' } }),
        'fieldManager=one',
      );
      const answer = await applied(
        t,
        `${path}/status`,
        widgets.widget('a', { spec: { size: 5 }, status: { phase: 'Ready' } }),
        'fieldManager=controller',
      );
      t.same('object', answer.body);
      deepStrictEqual(at(answer.body, 'spec'), { size: 1 });
    },
    'apply on a subresource of what is not there is not found': async (t) => {
      const widgets = await createWidgets(t, { version: { subresources: { status: {} } } });
      const path = widgets.path(await t.namespace(), 'a');
      t.same('answer', failureOf(expectStatus(await apply(t, `${path}/status`, widgets.widget('a')), 404)));
    },
    'an applied default belongs to nobody': async (t) => {
      const properties = {
        spec: { type: 'object', properties: { size: { type: 'integer', default: 3 }, colour: { type: 'string' } } },
      };
      const widgets = await createWidgets(t, { properties });
      const path = widgets.path(await t.namespace(), 'a');
      t.same('object', (await applied(t, path, widgets.widget('a', { spec: { colour: 'red' } }))).body);
    },
    'an apply that changes no field of its own keeps the version of another writer': async (t) => {
      const path = await mapPath(t);
      await applied(t, path, configMap('a', { k: 'v' }), 'fieldManager=one');
      const other = await mergePatch(t, path, { data: { l: 'w' } });
      const again = await applied(t, path, configMap('a', { k: 'v' }), 'fieldManager=one');
      strictEqual(at(again.body, 'metadata.resourceVersion'), at(other.body, 'metadata.resourceVersion'));
    },
    'taking over from a client that only updated': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      await create(t, path, configMap('a', { k: 'v', l: 'v' }));
      const answer = await applied(t, `${path}/a`, configMap('a', { k: 'v' }));
      t.same('object', answer.body);
    },
  },
};
