import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { at, itemsAt } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  apply,
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';
import { applied, mapPath, service } from '#local-cluster/conformance/topics/apply/support.ts';

export const fields: Topic['cases'] = {
  'managed fields can be reset': async (t) => {
    const path = await mapPath(t);
    await applied(t, path, configMap('a', { k: 'v' }));
    const answer = await mergePatch(t, path, { metadata: { managedFields: [{}] } });
    strictEqual(at(expectStatus(answer, 200).body, 'metadata.managedFields'), undefined);
  },
  'fields from before managed fields were tracked are kept by the first manager': async (t) => {
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
  'list and map types of a schema determine the ownership of its fields': async (t) => {
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
  'an unknown field cannot be applied': async (t) => {
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
  'apply to a subresource of a missing object is not found': async (t) => {
    const widgets = await createWidgets(t, { version: { subresources: { status: {} } } });
    const path = widgets.path(await t.namespace(), 'a');
    t.same('answer', failureOf(expectStatus(await apply(t, `${path}/status`, widgets.widget('a')), 404)));
  },
  'an applied default has no owner': async (t) => {
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
  'an apply takes over from a client that only updated': async (t) => {
    const path = core(await t.namespace(), 'configmaps');
    await create(t, path, configMap('a', { k: 'v', l: 'v' }));
    const answer = await applied(t, `${path}/a`, configMap('a', { k: 'v' }));
    t.same('object', answer.body);
  },
};
