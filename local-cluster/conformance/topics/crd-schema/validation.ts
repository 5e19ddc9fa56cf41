import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { strictEqual } from 'node:assert/strict';
import {} from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import { type Body, create, failureOf, mergePatch } from '#local-cluster/conformance/topics/objects.ts';
import { objectOf, stored, verdicts, string, integer } from '#local-cluster/conformance/topics/crd-schema/support.ts';

export const validation: Topic['cases'] = {
  'types are validated': async (t) => {
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
  'limits are validated': async (t) => {
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
  'formats are validated': async (t) => {
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
  'combinations are validated': async (t) => {
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
  'lists of type set and map have no duplicates': async (t) => {
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
  'numbers keep their type': async (t) => {
    const schema = objectOf({
      i: { type: 'integer', format: 'int64' },
      n: { type: 'number' },
      any: { 'x-kubernetes-preserve-unknown-fields': true },
    });
    const spec = { i: 9_007_199_254_740_991, n: 0.1, any: [1, 1.5, -0.0, 1e3] };
    t.same('spec', await stored(t, schema, spec));
  },
  'an update is validated completely, but unchanged violations are accepted': async (t) => {
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
};
