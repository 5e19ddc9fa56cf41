import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from './json.ts';
import type { ValidationRule } from './json-schema.ts';
import { compileCel, compileMatchCondition } from './cel.ts';
import { escapeName } from './cel-values.ts';
import { validateObject, type JsonSchema } from './structural.ts';

const ruled = (x: JsonSchema, ...rules: ValidationRule[]): JsonSchema => ({
  type: 'object',
  properties: {
    spec: { type: 'object', properties: { x: { ...x, 'x-kubernetes-validations': rules } } },
  },
});
const withX = (x: Json): JsonObject => ({ spec: { x } });
const texts = (schema: JsonSchema, object: JsonObject, oldObject?: JsonObject): string[] =>
  validateObject(schema, object, oldObject === undefined ? {} : { oldObject }).map((c) => `${c.field}: ${c.message}`);

describe('x-kubernetes-validations', () => {
  const number: JsonSchema = { type: 'integer' };
  const group: JsonSchema = { type: 'object', properties: { a: number, 'b-c': number, namespace: { type: 'string' } } };

  it('show the rule when there is no message', () => {
    expect(texts(ruled(number, { rule: 'self > 1' }), withX(1))).toEqual([
      'spec.x: Invalid value: 1: failed rule: self > 1',
    ]);
  });

  it('show the message, and no value of an object', () => {
    const schema = ruled(group, { rule: 'self.a > 1', message: 'a is too small' });
    expect(texts(schema, withX({ a: 1 }))).toEqual(['spec.x: Invalid value: a is too small']);
  });

  it('show the result of the messageExpression', () => {
    const schema = ruled(number, { rule: 'self > 1', messageExpression: '"got " + string(self)' });
    expect(texts(schema, withX(1))).toEqual(['spec.x: Invalid value: 1: got 1']);
  });

  it('have a reason and a field path', () => {
    const schema = ruled(group, {
      rule: 'has(self.a)',
      message: 'needed',
      reason: 'FieldValueRequired',
      fieldPath: '.a',
    });
    expect(validateObject(schema, withX({}))).toEqual([
      { reason: 'FieldValueRequired', field: 'spec.x.a', message: 'Required value: needed' },
    ]);
  });

  it('access escaped names', () => {
    const schema = ruled(group, { rule: 'self.b__dash__c == 2 && self.__namespace__ == "n"', message: 'm' });
    expect(texts(schema, withX({ 'b-c': 2, namespace: 'n' }))).toEqual([]);
    expect(texts(schema, withX({ 'b-c': 3, namespace: 'n' }))).toEqual(['spec.x: Invalid value: m']);
  });

  it('report which key is missing', () => {
    const schema = ruled(group, { rule: 'self.a > 1' });
    expect(texts(schema, withX({}))).toEqual([
      'spec.x: Invalid value: "object": no such key: a evaluating rule: self.a > 1',
    ]);
  });

  it('are evaluated for every item of a list and every value of a map', () => {
    const rule: ValidationRule = { rule: 'self > 1', message: 'm' };
    const item: JsonSchema = { type: 'integer', 'x-kubernetes-validations': [rule] };
    expect(texts(ruled({ type: 'array', items: item }), withX([2, 1]))).toEqual(['spec.x[1]: Invalid value: 1: m']);
    expect(texts(ruled({ type: 'object', additionalProperties: item }), withX({ k: 1 }))).toEqual([
      'spec.x[k]: Invalid value: 1: m',
    ]);
  });

  it('compare with the old value on update only', () => {
    const schema = ruled(number, { rule: 'self == oldSelf', message: 'immutable' });
    expect(texts(schema, withX(1))).toEqual([]);
    expect(texts(schema, withX(1), withX(2))).toEqual(['spec.x: Invalid value: 1: immutable']);
    expect(texts(schema, withX(1), { spec: {} })).toEqual([]);
  });

  it('can read the old value as an optional', () => {
    const rule = { rule: 'oldSelf.hasValue() || self == 1', message: 'starts at 1', optionalOldSelf: true };
    expect(texts(ruled(number, rule), withX(2))).toEqual(['spec.x: Invalid value: 2: starts at 1']);
    expect(texts(ruled(number, rule), withX(2), withX(1))).toEqual([]);
  });

  it('ignore violations that did not change', () => {
    const schema = ruled(number, { rule: 'self > 1' });
    expect(texts(schema, withX(1), withX(1))).toEqual([]);
    expect(texts(schema, withX(1), withX(0))).toHaveLength(1);
  });

  it('are skipped with a message while the schema is violated', () => {
    const schema = ruled({ type: 'integer' }, { rule: 'self > 1' });
    expect(texts(schema, withX('a')).at(-1)).toBe(
      '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
    );
  });

  it('on the root can read the name', () => {
    const schema: JsonSchema = {
      type: 'object',
      'x-kubernetes-validations': [{ rule: 'self.metadata.name.startsWith("a")', message: 'm' }],
    };
    expect(texts(schema, { metadata: { name: 'b' } })).toEqual(['<nil>: Invalid value: m']);
    expect(texts(schema, { metadata: { name: 'ab' } })).toEqual([]);
  });

  it('parse times and durations by their format', () => {
    const schema = ruled({ type: 'string', format: 'duration' }, { rule: "self <= duration('1h')", message: 'm' });
    expect(texts(schema, withX('30m'))).toEqual([]);
    expect(texts(schema, withX('2h'))).toEqual(['spec.x: Invalid value: "2h": m']);
  });

  it('work on int-or-string', () => {
    const rule = { rule: "type(self) == string ? self.endsWith('%') : self > 0", message: 'm' };
    const schema = ruled({ 'x-kubernetes-int-or-string': true }, rule);
    expect(texts(schema, withX('5%'))).toEqual([]);
    expect(texts(schema, withX(0))).toEqual(['spec.x: Invalid value: 0: m']);
  });
});

describe('functions of Kubernetes', () => {
  it.each([
    ['"abc".charAt(1) == "b"'],
    ['"a-b-c".replace("-", "") == "abc"'],
    ['"a-b-c".replace("-", "", 1) == "ab-c"'],
    ['"%s has %d".format(["x", 3]) == "x has 3"'],
    ['"abc 123".find("[0-9]+") == "123"'],
    ['"1, 2, 3".findAll("[0-9]") == ["1", "2", "3"]'],
    ['"A".lowerAscii() == "a"'],
    ['"a,b".split(",") == ["a", "b"]'],
    ['[1, 2, 3].isSorted()'],
    ['[1, 2, 3].sum() == 6'],
    ['[2, 1].min() == 1 && [2, 1].max() == 2'],
    ['["a", "b"].indexOf("b") == 1'],
    ['sets.contains([1, 2], [2]) && sets.equivalent([1, 2], [2, 1]) && sets.intersects([1], [1, 2])'],
    ['isURL("https://a.b:8080/c?d=e") && url("https://a.b:8080/c?d=e").getPort() == "8080"'],
    ['url("https://a.b/c").getScheme() == "https" && url("https://a.b/c").getEscapedPath() == "/c"'],
    ['quantity("1.5Gi").isGreaterThan(quantity("1G"))'],
    ['quantity("500m").add(quantity("0.5")).isInteger()'],
    ['isQuantity("1Gi") && !isQuantity("1Gix")'],
    ['isIP("10.0.0.1") && ip("::1").family() == 6'],
    ['cidr("10.0.0.0/8").containsIP("10.1.2.3") && !isCIDR("10.0.0.0/33")'],
  ])('%s', (expression) => {
    const compiled = compileCel(expression, []);
    expect(compiled).toMatchObject({ kind: 'compiled', type: 'bool' });
    expect(compiled.kind === 'compiled' && compiled.run({})).toBe(true);
  });
});

describe('compileMatchCondition', () => {
  const run = (expression: string, object: Json): boolean => {
    const compiled = compileMatchCondition(expression);
    if (compiled.kind === 'invalid') throw new Error(compiled.message);
    return compiled.matches({ object, oldObject: null, request: { operation: 'CREATE', userInfo: { username: 'u' } } });
  };

  it('reads the object and the request', () => {
    expect(
      run('request.operation == "CREATE" && object.metadata.labels["a-b/c"] == "1"', {
        metadata: { labels: { 'a-b/c': '1' } },
      }),
    ).toBe(true);
    expect(run('oldObject == null && has(object.spec)', {})).toBe(false);
  });

  it('throws the evaluation error', () => {
    expect(() => run('object.spec.x > 1', {})).toThrow('no such key: spec');
  });

  it('rejects what does not compile or is not a condition', () => {
    expect(compileMatchCondition('object.')).toMatchObject({ kind: 'invalid' });
    expect(compileMatchCondition('1 + 1')).toEqual({ kind: 'invalid', message: 'must evaluate to bool' });
    expect(compileMatchCondition('foo == 1')).toEqual({
      kind: 'invalid',
      message:
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^",
    });
  });
});

describe('escapeName', () => {
  it.each([
    ['a', 'a'],
    ['a-b', 'a__dash__b'],
    ['a.b/c', 'a__dot__b__slash__c'],
    ['a__b', 'a__underscores__b'],
    ['namespace', '__namespace__'],
    ['a b', undefined],
    ['1a', undefined],
  ])('%s becomes %s', (name, expected) => {
    expect(escapeName(name)).toBe(expected);
  });
});
