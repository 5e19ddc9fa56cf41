import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../schema/json.ts';
import { applyJsonPatch } from './json-patch.ts';

const patchedBy = (object: JsonObject, patch: unknown): Json => {
  const outcome = applyJsonPatch(object, patch);
  return outcome.kind === 'patched' ? outcome.object : `refused: ${outcome.detail ?? outcome.message}`;
};

describe('applyJsonPatch', () => {
  const cases: [string, JsonObject, Json[], Json][] = [
    ['adds a field', { a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
    ['adds into a list', { l: [1, 3] }, [{ op: 'add', path: '/l/1', value: 2 }], { l: [1, 2, 3] }],
    ['appends with a dash', { l: [1] }, [{ op: 'add', path: '/l/-', value: 2 }], { l: [1, 2] }],
    ['removes', { a: 1, b: 2 }, [{ op: 'remove', path: '/a' }], { b: 2 }],
    ['counts negative indices from the end', { l: [1, 2] }, [{ op: 'remove', path: '/l/-1' }], { l: [1] }],
    ['replaces', { a: { b: 1 } }, [{ op: 'replace', path: '/a/b', value: 2 }], { a: { b: 2 } }],
    ['moves', { a: 1 }, [{ op: 'move', from: '/a', path: '/b' }], { b: 1 }],
    ['copies', { a: [1] }, [{ op: 'copy', from: '/a', path: '/b' }], { a: [1], b: [1] }],
    ['decodes ~1 and ~0', { a: { 'x/y~z': 1 } }, [{ op: 'remove', path: '/a/x~1y~0z' }], { a: {} }],
    [
      'passes a test',
      { a: { b: [1, { c: 2 }] } },
      [{ op: 'test', path: '/a', value: { b: [1, { c: 2 }] } }],
      { a: { b: [1, { c: 2 }] } },
    ],
    ['tests a missing field as null', { a: 1 }, [{ op: 'test', path: '/b', value: null }], { a: 1 }],
  ];
  it.each(cases)('%s', (_, object, patch, expected) => {
    expect(patchedBy(object, patch)).toEqual(expected);
  });

  const refusals: [string, JsonObject, Json[], string][] = [
    ['a failed test', { a: 1 }, [{ op: 'test', path: '/a', value: 2 }], 'testing value /a failed: test failed'],
    [
      'a missing parent',
      {},
      [{ op: 'add', path: '/a/b', value: 1 }],
      'add operation does not apply: doc is missing path: "/a/b": missing value',
    ],
    [
      'removing a missing value',
      {},
      [{ op: 'remove', path: '/a' }],
      "error in remove for path: '/a': Unable to remove nonexistent key: a: missing value",
    ],
    [
      'an index too far',
      { l: [] },
      [{ op: 'add', path: '/l/1', value: 1 }],
      "error in add for path: '/l/1': Unable to access invalid index: 1: invalid index referenced",
    ],
    ['an unknown operation', {}, [{ op: 'frob', path: '/a' }], 'Unexpected kind: frob'],
  ];
  it.each(refusals)('rejects %s with 422', (_, object, patch, detail) => {
    expect(applyJsonPatch(object, patch)).toEqual({
      kind: 'refused',
      code: 422,
      reason: 'Invalid',
      message: 'the server rejected our request due to an error in our request',
      detail,
    });
  });

  it('rejects a patch that is not a list with 400', () => {
    expect(applyJsonPatch({}, {})).toMatchObject({
      code: 400,
      message: 'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
    });
  });

  it('reports unknown fields of operations', () => {
    expect(applyJsonPatch({}, [{ op: 'add', path: '/a', value: 1, x: 1 }])).toMatchObject({
      strictErrors: ['json patch unknown field "[0].x"'],
    });
  });

  it('rejects more than 10,000 operations', () => {
    const patch = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/a', value: null }));
    expect(applyJsonPatch({}, patch)).toMatchObject({ code: 413 });
  });

  it('changes nothing when a later operation fails', () => {
    const object = { a: 1 };
    applyJsonPatch(object, [
      { op: 'remove', path: '/a' },
      { op: 'remove', path: '/a' },
    ]);
    expect(object).toEqual({ a: 1 });
  });

  it('reverts an added field by removing it', () => {
    const keys = fc.string({ minLength: 1 }).filter((key) => key !== '__proto__');
    fc.assert(
      fc.property(fc.dictionary(keys, fc.jsonValue() as fc.Arbitrary<Json>), keys, (object, key) => {
        fc.pre(!Object.hasOwn(object, key));
        const path = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
        expect(
          patchedBy(object, [
            { op: 'add', path, value: 1 },
            { op: 'remove', path },
          ]),
        ).toEqual(object);
      }),
    );
  });
});
