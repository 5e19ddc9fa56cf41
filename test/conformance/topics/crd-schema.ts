// Structural schemas: what is pruned, defaulted, and refused.
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#test/conformance/suite/case.ts';
import { at, type JsonValue } from '#test/conformance/suite/json.ts';
import { createWidgets } from '#test/conformance/topics/custom.ts';
import { type Body, create, expectStatus, failureOf, get, mergePatch } from '#test/conformance/topics/objects.ts';

const objectOf = (properties: Body, more: Body = {}): Body => ({ type: 'object', properties, ...more });

/** Creates one widget with this `spec` under this schema of `spec`; the stored `spec`. */
const stored = async (t: CaseContext, schema: Body, spec: unknown): Promise<JsonValue> => {
  const widgets = await createWidgets(t, { properties: { spec: schema } });
  return at(await create(t, widgets.path(await t.namespace()), widgets.widget('a', { spec })), 'spec');
};

/** Tries each `spec` under one schema; what the server says of it. */
const verdicts = async (t: CaseContext, schema: Body, specs: Readonly<Record<string, unknown>>): Promise<void> => {
  const widgets = await createWidgets(t, { properties: { spec: schema } });
  const path = `${widgets.path(await t.namespace())}?dryRun=All`;
  for (const [label, spec] of Object.entries(specs)) {
    const answer = await t.call('POST', path, { body: widgets.widget('a', { spec }) });
    t.same(label, answer.status === 201 ? { status: 201, spec: at(answer.body, 'spec') } : failureOf(answer));
  }
};

const string = { type: 'string' };
const integer = { type: 'integer' };

export const crdSchema: Topic = {
  topic: 'crd-schema',
  cases: {
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
    'x-kubernetes-preserve-unknown-fields keeps them, and prunes again below a known field': async (t) => {
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
    'defaults fill what is missing, at every depth that exists': async (t) => {
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
    'defaults also show in objects stored before': async (t) => {
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
    'null is dropped for a default, kept where it may be': async (t) => {
      const schema = objectOf({
        plain: { type: 'string', default: 'D' },
        nullable: { type: 'string', nullable: true, default: 'D' },
        free: { type: 'string', nullable: true },
      });
      await verdicts(t, schema, { nulls: { plain: null, nullable: null, free: null }, missing: {} });
    },
    'null where it may not be is refused or pruned': async (t) => {
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
    'int-or-string takes both and nothing else': async (t) => {
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
    'types are checked': async (t) => {
      const schema = objectOf({
        s: string,
        i: integer,
        n: { type: 'number' },
        b: { type: 'boolean' },
        l: { type: 'array', items: integer },
        o: objectOf({}),
      });
      await verdicts(t, schema, {
        'number for string': { s: 1 },
        'string for integer': { i: '1' },
        'fraction for integer': { i: 1.5 },
        'whole number for integer': { i: 3.0 },
        'string for number': { n: 'x' },
        'string for boolean': { b: 'true' },
        'object for list': { l: {} },
        'list for object': { o: [] },
        'many at once': { s: 1, i: 'x', l: ['a', 1, 'b'] },
        'list for spec': [],
      });
    },
    'limits are checked': async (t) => {
      const schema = objectOf({
        e: { type: 'string', enum: ['a', 'b'] },
        p: { type: 'string', pattern: '^[a-z]+$' },
        len: { type: 'string', minLength: 2, maxLength: 3 },
        num: { type: 'integer', minimum: 1, maximum: 3 },
        ex: { type: 'number', minimum: 1, exclusiveMinimum: true, maximum: 2, exclusiveMaximum: true },
        mul: { type: 'integer', multipleOf: 5 },
        items: { type: 'array', minItems: 1, maxItems: 2, items: integer },
        props: { type: 'object', minProperties: 1, maxProperties: 2, additionalProperties: string },
      });
      await verdicts(t, schema, {
        good: { e: 'a', p: 'x', len: 'äö', num: 3, ex: 1.5, mul: 10, items: [1], props: { a: 'b' } },
        enum: { e: 'c' },
        pattern: { p: 'X1' },
        short: { len: 'x' },
        long: { len: 'xxxx' },
        small: { num: 0 },
        large: { num: 4 },
        exclusive: { ex: 1 },
        'exclusive maximum': { ex: 2 },
        multiple: { mul: 7 },
        'few items': { items: [] },
        'many items': { items: [1, 2, 3] },
        'few properties': { props: {} },
        'many properties': { props: { a: 'a', b: 'b', c: 'c' } },
        several: { e: 'c', num: 9, p: '1' },
      });
    },
    'required fields are named': async (t) => {
      const schema = objectOf(
        {
          a: string,
          inner: objectOf({ b: string }, { required: ['b'] }),
          list: { type: 'array', items: objectOf({ c: string }, { required: ['c'] }) },
        },
        { required: ['a', 'inner'] },
      );
      await verdicts(t, schema, { nothing: {}, inner: { a: '1', inner: {}, list: [{}, { c: '1' }] } });
      const widgets = `/apis/${t.id}.example.com/v1/namespaces/${await t.namespace()}/widgets`;
      const body = { apiVersion: `${t.id}.example.com/v1`, kind: 'Widget', metadata: { name: 'b' } };
      strictEqual((await t.call('POST', widgets, { body })).status, 201);
    },
    'formats are checked': async (t) => {
      const formats = [
        'date-time',
        'date',
        'byte',
        'ipv4',
        'ipv6',
        'cidr',
        'uri',
        'uuid',
        'email',
        'hostname',
        'mac',
        'duration',
        'password',
        'int32',
        'unknown-format',
      ];
      const properties = Object.fromEntries(
        formats.map((format) => [format, { type: format === 'int32' ? 'integer' : 'string', format }]),
      );
      const bad: Body = { ...Object.fromEntries(formats.map((format) => [format, 'not it'])), int32: 3_000_000_000 };
      const good = {
        'date-time': '2026-01-02T03:04:05Z',
        date: '2026-01-02',
        byte: 'dGV4dA==',
        ipv4: '10.0.0.1',
        ipv6: 'fd00::1',
        cidr: '10.0.0.0/8',
        uri: 'https://example.com/x?y',
        uuid: '11111111-1111-4111-8111-111111111111',
        email: 'a@example.com',
        hostname: 'example.com',
        mac: '00:11:22:33:44:55',
        duration: '1h30m',
        int32: 5,
      };
      await verdicts(t, objectOf(properties), { bad, good });
    },
    'combinations are checked': async (t) => {
      const schema = objectOf(
        { a: string, b: string, n: integer },
        {
          oneOf: [{ required: ['a'] }, { required: ['b'] }],
          not: { required: ['n'], properties: { n: { enum: [13] } } },
          anyOf: [{ properties: { n: { minimum: 5 } } }, { properties: { n: { maximum: 1 } } }],
        },
      );
      await verdicts(t, schema, {
        one: { a: '1' },
        none: {},
        both: { a: '1', b: '1' },
        not: { a: '1', n: 13 },
        any: { a: '1', n: 3 },
      });
    },
    'sets and maps in lists have no duplicates': async (t) => {
      const schema = objectOf({
        set: { type: 'array', 'x-kubernetes-list-type': 'set', items: string },
        map: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name', 'port'],
          items: objectOf({ name: string, port: { type: 'integer', default: 80 } }, { required: ['name'] }),
        },
      });
      await verdicts(t, schema, {
        set: { set: ['a', 'b', 'a'] },
        map: { map: [{ name: 'x' }, { name: 'x', port: 80 }] },
        'different keys': { map: [{ name: 'x' }, { name: 'x', port: 81 }] },
      });
    },
    'numbers keep their kind': async (t) => {
      const schema = objectOf({
        i: { type: 'integer', format: 'int64' },
        n: { type: 'number' },
        any: { 'x-kubernetes-preserve-unknown-fields': true },
      });
      const spec = { i: 9_007_199_254_740_991, n: 0.1, any: [1, 1.5, -0.0, 1e3] };
      t.same('spec', await stored(t, schema, spec));
    },
    'an update is validated whole, but unchanged faults are tolerated': async (t) => {
      const widgets = await createWidgets(t, { properties: { spec: objectOf({ a: string, b: string }) } });
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a', { spec: { a: 'too long' } }));
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${widgets.crdName}`;
      const at3 = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/maxLength';
      await t.call('PATCH', path, {
        body: [{ op: 'add', path: at3, value: 3 }],
        contentType: 'application/json-patch+json',
      });
      for (let i = 0; i < 50; i += 1) {
        const answer = await t.call('POST', `${widgets.path(ns)}?dryRun=All`, {
          body: widgets.widget('b', { spec: { a: 'too long' } }),
        });
        if (answer.status === 422) break;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      strictEqual((await mergePatch(t, widgets.path(ns, 'a'), { spec: { b: 'new' } })).status, 200);
      t.same(
        'changed and still wrong',
        failureOf(await mergePatch(t, widgets.path(ns, 'a'), { spec: { a: 'still long' } })),
      );
    },
  },
};
