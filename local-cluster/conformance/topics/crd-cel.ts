// Validation rules in CEL.
import { strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import { type Body, create, expectStatus, failureOf, mergePatch } from '#local-cluster/conformance/topics/objects.ts';

interface Rule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

const schemaWith = (properties: Body, ...rules: readonly Rule[]): Body => ({
  type: 'object',
  properties,
  'x-kubernetes-validations': rules,
});

const verdicts = async (t: CaseContext, schema: Body, specs: Readonly<Record<string, Body>>): Promise<void> => {
  const widgets = await createWidgets(t, { properties: { spec: schema } });
  const path = `${widgets.path(await t.namespace())}?dryRun=All`;
  for (const [label, spec] of Object.entries(specs)) {
    const answer = await t.call('POST', path, { body: widgets.widget('a', { spec }) });
    t.same(label, answer.status === 201 ? { status: 201 } : failureOf(answer));
  }
};

/** Creates with the first `spec`, then patches with each of the others. */
const changes = async (
  t: CaseContext,
  schema: Body,
  first: Body,
  others: Readonly<Record<string, Body>>,
): Promise<void> => {
  const widgets = await createWidgets(t, { properties: { spec: schema } });
  const ns = await t.namespace();
  await create(t, widgets.path(ns), widgets.widget('a', { spec: first }));
  for (const [label, spec] of Object.entries(others)) {
    const answer = await mergePatch(t, `${widgets.path(ns, 'a')}?dryRun=All`, { spec });
    t.same(label, answer.status === 200 ? { status: 200 } : failureOf(answer));
  }
};

const integer = { type: 'integer' };
const string = { type: 'string' };

export const crdCel: Topic = {
  topic: 'crd-cel',
  cases: {
    'a rule without a message is shown itself': async (t) => {
      await verdicts(t, schemaWith({ min: integer, max: integer }, { rule: 'self.min <= self.max' }), {
        good: { min: 1, max: 2 },
        bad: { min: 3, max: 2 },
      });
    },
    'a message, an expression for it, a reason and a field path are used': async (t) => {
      const schema = schemaWith(
        { a: integer, b: integer, c: integer, d: { type: 'object', properties: { e: integer } } },
        { rule: '!has(self.a) || self.a > 0', message: 'a must be positive' },
        { rule: '!has(self.b) || self.b > 0', messageExpression: 'self.b < 0 ? "b is negative" : "b is zero"' },
        { rule: '!has(self.c) || self.c > 0', reason: 'FieldValueForbidden', message: 'c is forbidden' },
        {
          rule: '!has(self.d) || self.d.e > 0',
          fieldPath: '.d.e',
          reason: 'FieldValueRequired',
          message: 'e is needed',
        },
      );
      await verdicts(t, schema, {
        a: { a: 0 },
        b: { b: -4 },
        c: { c: 0 },
        d: { d: { e: 0 } },
        all: { a: 0, b: 0, c: 0 },
      });
    },
    'oldSelf is the previous value, only in updates': async (t) => {
      const frozen = {
        ...string,
        'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'name is immutable' }],
      };
      const growing = {
        ...integer,
        'x-kubernetes-validations': [{ rule: 'self >= oldSelf', message: 'size only grows' }],
      };
      const schema = { type: 'object', properties: { name: frozen, size: growing, other: string } };
      await changes(
        t,
        schema,
        { name: 'x', size: 2 },
        {
          same: { other: 'y' },
          grown: { size: 3 },
          shrunk: { size: 1 },
          renamed: { name: 'y' },
          'name removed': { name: null },
          both: { name: 'z', size: 0 },
        },
      );
    },
    'a rule of the whole spec can forbid the removal of a field': async (t) => {
      const schema = schemaWith(
        { a: string, b: string },
        { rule: 'has(self.a) == has(oldSelf.a)', message: 'a cannot come or go' },
      );
      await changes(t, schema, { a: 'x' }, { kept: { b: 'y' }, removed: { a: null } });
    },
    'optionalOldSelf is evaluated for creations too': async (t) => {
      const schema = schemaWith(
        { a: integer },
        { rule: 'oldSelf.hasValue() || self.a == 1', optionalOldSelf: true, message: 'begin with 1' },
      );
      await verdicts(t, schema, { good: { a: 1 }, bad: { a: 2 } });
    },
    'lists, maps and strings have functions': async (t) => {
      const schema = schemaWith(
        {
          list: { type: 'array', maxItems: 10, items: { ...string, maxLength: 20 } },
          map: { type: 'object', maxProperties: 10, additionalProperties: integer },
          text: { ...string, maxLength: 50 },
        },
        { rule: '!has(self.list) || self.list.all(x, x.startsWith("a"))', message: 'all begin with a' },
        { rule: '!has(self.list) || self.list.exists(x, x.size() > 1)', message: 'one is longer than 1' },
        { rule: '!has(self.map) || self.map.all(k, self.map[k] > 0)', message: 'all values are positive' },
        { rule: '!has(self.text) || self.text.matches("^[a-z]+$")', message: 'letters only' },
        { rule: '!has(self.list) || self.list.filter(x, x == "ab").size() < 2', message: 'ab once' },
      );
      await verdicts(t, schema, {
        good: { list: ['a', 'ab'], map: { x: 1 }, text: 'abc' },
        list: { list: ['b', 'ab'] },
        short: { list: ['a'] },
        map: { map: { x: 0 } },
        text: { text: 'A1' },
        twice: { list: ['ab', 'ab'] },
      });
    },
    'quantities, urls, ips and durations can be compared': async (t) => {
      const schema = schemaWith(
        { size: string, url: string, wait: { type: 'string', format: 'duration' } },
        {
          rule: '!has(self.size) || (isQuantity(self.size) && quantity(self.size).isGreaterThan(quantity("1Gi")))',
          message: 'more than 1Gi',
        },
        { rule: '!has(self.url) || (isURL(self.url) && url(self.url).getScheme() == "https")', message: 'https only' },
        { rule: '!has(self.wait) || self.wait <= duration("1h")', message: 'at most an hour' },
      );
      await verdicts(t, schema, {
        good: { size: '2Gi', url: 'https://example.com', wait: '30m' },
        size: { size: '1000Mi' },
        'no quantity': { size: 'big' },
        url: { url: 'http://example.com' },
        wait: { wait: '2h' },
      });
    },
    'the root rule can read name and metadata': async (t) => {
      const root = {
        'x-kubernetes-validations': [{ rule: 'self.metadata.name.startsWith("a")', message: 'the name begins with a' }],
      };
      const widgets = await createWidgets(t, { root });
      const path = widgets.path(await t.namespace());
      expectStatus(await t.call('POST', path, { body: widgets.widget('abc') }), 201);
      t.same('bad', failureOf(await t.call('POST', path, { body: widgets.widget('xyz') })));
    },
    'a rule on list items names the item': async (t) => {
      const item = {
        type: 'object',
        properties: { port: integer },
        'x-kubernetes-validations': [{ rule: 'self.port > 0', message: 'a port is positive' }],
      };
      await verdicts(
        t,
        { type: 'object', properties: { items: { type: 'array', maxItems: 10, items: item } } },
        {
          good: { items: [{ port: 1 }] },
          bad: { items: [{ port: 1 }, { port: 0 }, { port: -1 }] },
        },
      );
    },
    'a rule that fails to evaluate is an error of its field': async (t) => {
      await verdicts(
        t,
        schemaWith({ list: { type: 'array', maxItems: 5, items: integer } }, { rule: 'self.list[3] > 0' }),
        { short: { list: [1] } },
      );
    },
    'a rule is not evaluated for a value of the wrong type': async (t) => {
      await verdicts(t, schemaWith({ a: integer }, { rule: 'self.a > 0' }), { text: { a: 'x' as never } });
    },
    'an unchanged value that violates a new rule is accepted': async (t) => {
      const widgets = await createWidgets(t, {
        properties: { spec: { type: 'object', properties: { a: integer, b: integer } } },
      });
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a', { spec: { a: -1 } }));
      const pointer = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/x-kubernetes-validations';
      const body = [{ op: 'add', path: pointer, value: [{ rule: 'self > 0', message: 'positive' }] }];
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${widgets.crdName}`;
      expectStatus(await t.call('PATCH', path, { body, contentType: 'application/json-patch+json' }), 200);
      for (let i = 0; i < 50; i += 1) {
        if (
          (await t.call('POST', `${widgets.path(ns)}?dryRun=All`, { body: widgets.widget('b', { spec: { a: -1 } }) }))
            .status === 422
        )
          break;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      const kept = await mergePatch(t, widgets.path(ns, 'a'), { spec: { b: 1 } });
      strictEqual(at(expectStatus(kept, 200).body, 'spec.b'), 1);
      t.same('changed', failureOf(await mergePatch(t, widgets.path(ns, 'a'), { spec: { a: -2 } })));
    },
  },
};
