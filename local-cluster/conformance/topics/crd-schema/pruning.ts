import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { at } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import { create, expectStatus, get } from '#local-cluster/conformance/topics/objects.ts';
import { objectOf, stored, verdicts, string, integer } from '#local-cluster/conformance/topics/crd-schema/support.ts';

export const pruning: Topic['cases'] = {
  'unknown fields are pruned at every depth': async (t) => {
    const schema = objectOf({
      a: string,
      list: { type: 'array', items: objectOf({ b: string }) },
      map: { type: 'object', additionalProperties: objectOf({ c: string }) },
    });
    const spec = { a: '1', x: 1, list: [{ b: '1', x: 1 }], map: { k: { c: '1', x: 1 } } };
    deepStrictEqual(await stored(t, schema, spec), { a: '1', list: [{ b: '1' }], map: { k: { c: '1' } } });
  },
  'unknown fields of the root are pruned, metadata is kept': async (t) => {
    const widgets = await createWidgets(t, { properties: { spec: objectOf({}) } });
    const body = widgets.widget('a', { spec: {}, other: 1 }, { labels: { x: 'y' }, unknown: 1 });
    t.same('object', await create(t, widgets.path(await t.namespace()), body));
  },
  'x-kubernetes-preserve-unknown-fields keeps them, except below a specified field': async (t) => {
    const schema = objectOf({
      open: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: { known: objectOf({ a: string }) },
      },
    });
    const spec = { open: { any: { thing: [1, 'x', null] }, known: { a: '1', x: 1 } }, x: 1 };
    deepStrictEqual(await stored(t, schema, spec), { open: { any: { thing: [1, 'x', null] }, known: { a: '1' } } });
  },
  'defaults are set at every existing depth': async (t) => {
    const schema = objectOf({
      a: { type: 'string', default: 'A' },
      inner: objectOf({ b: { type: 'integer', default: 7 } }),
      filled: objectOf({ c: { type: 'boolean', default: true } }, { default: {} }),
      list: { type: 'array', items: objectOf({ d: { type: 'string', default: 'D' } }) },
      map: { type: 'object', additionalProperties: objectOf({ e: { type: 'number', default: 1.5 } }) },
    });
    deepStrictEqual(await stored(t, schema, {}), { a: 'A', filled: { c: true } });
    const widgets = `/apis/${t.id}.example.com/v1/namespaces/${await t.namespace()}/widgets`;
    const body = {
      apiVersion: `${t.id}.example.com/v1`,
      kind: 'Widget',
      metadata: { name: 'b' },
      spec: { inner: {}, list: [{}], map: { k: {} }, a: '' },
    };
    deepStrictEqual(at(await create(t, widgets, body), 'spec'), {
      a: '',
      filled: { c: true },
      inner: { b: 7 },
      list: [{ d: 'D' }],
      map: { k: { e: 1.5 } },
    });
  },
  'defaults are also set in objects stored before': async (t) => {
    const widgets = await createWidgets(t, { properties: { spec: objectOf({ a: string }) } });
    const ns = await t.namespace();
    await create(t, widgets.path(ns), widgets.widget('a', { spec: {} }));
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const operation = [
      {
        op: 'add',
        path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/default',
        value: 'late',
      },
    ];
    expectStatus(
      await t.call('PATCH', `${path}/${widgets.crdName}`, {
        body: operation,
        contentType: 'application/json-patch+json',
      }),
      200,
    );
    for (let i = 0; i < 50 && at(await get(t, widgets.path(ns, 'a')), 'spec.a') === undefined; i += 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    strictEqual(at(await get(t, widgets.path(ns, 'a')), 'spec.a'), 'late');
  },
  'null is replaced by a default, and kept where it is allowed': async (t) => {
    const schema = objectOf({
      plain: { type: 'string', default: 'D' },
      nullable: { type: 'string', nullable: true, default: 'D' },
      free: { type: 'string', nullable: true },
    });
    await verdicts(t, schema, { nulls: { plain: null, nullable: null, free: null }, missing: {} });
  },
  'null where it is not allowed is rejected or pruned': async (t) => {
    const schema = objectOf(
      { text: string, list: { type: 'array', items: string }, inner: objectOf({ a: integer }) },
      { required: ['text'] },
    );
    await verdicts(t, schema, {
      'required null': { text: null },
      'list of null': { text: 'a', list: [null] },
      'object null': { text: 'a', inner: null },
    });
  },
  'int-or-string accepts both and nothing else': async (t) => {
    const schema = objectOf({
      port: { 'x-kubernetes-int-or-string': true },
      pattern: {
        'x-kubernetes-int-or-string': true,
        anyOf: [{ type: 'integer' }, { type: 'string' }],
        pattern: '^[a-z]+$',
      },
    });
    await verdicts(t, schema, {
      integer: { port: 80 },
      string: { port: 'http' },
      boolean: { port: true },
      number: { port: 1.5 },
      object: { port: {} },
      'pattern integer': { pattern: 5 },
      'pattern string': { pattern: 'UP' },
    });
  },
  'an embedded resource keeps its type and metadata': async (t) => {
    const schema = objectOf({
      template: { ...objectOf({ spec: objectOf({ a: string }) }), 'x-kubernetes-embedded-resource': true },
    });
    await verdicts(t, schema, {
      whole: {
        template: {
          apiVersion: 'v1',
          kind: 'Thing',
          metadata: { name: 'x', labels: { a: 'b' }, unknown: 1 },
          spec: { a: '1', x: 1 },
          x: 1,
        },
      },
      'without kind': { template: { apiVersion: 'v1', metadata: { name: 'x' } } },
      'bad name': { template: { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'Bad_Name' } } },
      'bad metadata': { template: { apiVersion: 'v1', kind: 'Thing', metadata: 'x' } },
    });
  },
};
