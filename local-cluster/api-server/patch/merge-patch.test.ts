import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../schema/json.ts';
import { applyMergePatch, mergeObjects } from './outcome.ts';

describe('applyMergePatch', () => {
  const cases: [string, JsonObject, JsonObject, JsonObject][] = [
    ['sets and deletes', { a: 1, b: 2 }, { a: null, c: 3 }, { b: 2, c: 3 }],
    ['merges objects', { a: { b: 1, c: 2 } }, { a: { b: null } }, { a: { c: 2 } }],
    ['replaces lists whole', { a: [1, 2] }, { a: [3] }, { a: [3] }],
    ['drops nulls of new objects', {}, { a: { b: null, c: { d: null } } }, { a: { c: {} } }],
    ['replaces a list by an object', { a: [1] }, { a: { b: 1 } }, { a: { b: 1 } }],
    ['replaces an object by a text', { a: { b: 1 } }, { a: 'x' }, { a: 'x' }],
  ];
  it.each(cases)('%s', (_, object, patch, expected) => {
    expect(applyMergePatch(object, patch)).toEqual({ kind: 'patched', object: expected, strictErrors: [] });
  });

  it.each([
    [[], 'array'],
    ['x', 'string'],
    [1, 'number'],
    [true, 'bool'],
  ])('rejects %j with 400', (patch, kind) => {
    expect(applyMergePatch({}, patch)).toMatchObject({
      code: 400,
      message: `error decoding patch: json: cannot unmarshal ${kind} into Go value of type map[string]interface {}`,
    });
  });
});

describe('properties', () => {
  const keys = fc.constantFrom('a', 'b', 'c');
  const values: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom<Json>(null, 1, 'x'),
      fc.array(fc.integer(), { maxLength: 2 }),
      fc.dictionary(keys, tie('value')),
    ),
  })).value;
  const objects = fc.dictionary(keys, values);

  it('an empty patch changes nothing', () => {
    fc.assert(
      fc.property(objects, (object) => {
        expect(mergeObjects(object, {})).toEqual(object);
      }),
    );
  });

  it('applying a patch is idempotent', () => {
    fc.assert(
      fc.property(objects, objects, (object, patch) => {
        const once = mergeObjects(object, patch);
        expect(mergeObjects(once, patch)).toEqual(once);
      }),
    );
  });
});
