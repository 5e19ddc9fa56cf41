import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findDuplicateFields } from '#local-cluster/api-server/handlers/body.ts';
import { dnsLabel, dnsSubdomain, generateName, qualifiedName } from './names.ts';
import { findUnknownFields } from './decode.ts';

describe('findDuplicateFields', () => {
  test.each([
    ['{"a":1,"b":2}', []],
    ['{"a":1,"a":2}', ['a']],
    ['{"a":{"b":1,"c":{},"b":2}}', ['a.b']],
    [String.raw`{"a":[{"x":"\"}","x":1}],"a":[]}`, ['a[0].x', 'a']],
    ['[]', []],
    ['"text"', []],
  ])('%s', (text, found) => {
    expect(findDuplicateFields(text)).toEqual(found);
  });

  test('finds nothing in the output of JSON.stringify', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(findDuplicateFields(JSON.stringify(JSON.parse(text)))).toEqual([]);
      }),
    );
  });
});

describe('findUnknownFields', () => {
  const schema = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: { list: { type: 'array', items: { type: 'object', properties: { a: {} } } } },
      },
      labels: { type: 'object', additionalProperties: { type: 'string' } },
    },
  };
  test('lists them in the order of the object', () => {
    const object = { z: 1, spec: { list: [{ a: 1 }, { b: 1 }], x: 1 }, labels: { any: 'x' }, a: 1 };
    expect(findUnknownFields(schema, object)).toEqual(['z', 'spec.list[1].b', 'spec.x', 'a']);
  });
});

describe('names', () => {
  test.each([
    ['a-b.c', true],
    ['A', false],
    ['-a', false],
    ['a..b', false],
    ['', false],
    ['x'.repeat(254), false],
  ])('%j as a subdomain', (name, isFine) => {
    expect(dnsSubdomain(name, false).length === 0).toBe(isFine);
  });

  test('a prefix may end with a dash', () => {
    expect(dnsLabel('a-', true)).toEqual([]);
    expect(dnsLabel('a-', false)).not.toEqual([]);
  });

  test.each([
    ['app', true],
    ['example.com/App_1', true],
    ['/app', false],
    ['a/b/c', false],
    ['Example.com/app', false],
  ])('%j as a qualified name', (name, isFine) => {
    expect(qualifiedName(name).length === 0).toBe(isFine);
  });

  test('a generated name is valid, however long its base', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-z][a-z0-9-]{0,80}$/),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (base, seed) => {
          const name = generateName(base, () => seed);
          expect(name.length).toBeLessThanOrEqual(63);
          expect(dnsLabel(name, false)).toEqual([]);
        },
      ),
    );
  });
});
