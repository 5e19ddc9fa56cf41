import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type PatchOperation, diffJson } from '#shared/runtime/json-patch.ts';

type Parent = Record<string, unknown> | unknown[];

/** Carries the three operations out, literally as RFC 6902 has them; anything out of place throws. */
const applyPatch = (document: unknown, patch: readonly PatchOperation[]): unknown => {
  let result = structuredClone(document);
  for (const operation of patch) {
    if (operation.path === '') {
      result = operation.op === 'remove' ? undefined : operation.value;
      continue;
    }
    const steps = operation.path
      .slice(1)
      .split('/')
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = steps.pop() ?? '';
    const parent = steps.reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], result) as Parent;
    applyTo(parent, last, operation);
  }
  return result;
};

const applyTo = (parent: Parent, step: string, operation: PatchOperation): void => {
  if (Array.isArray(parent)) {
    const index = step === '-' ? parent.length : Number(step);
    if (operation.op !== 'add' && index >= parent.length) throw new Error('no such element');
    if (operation.op === 'add') parent.splice(index, 0, operation.value);
    else if (operation.op === 'remove') parent.splice(index, 1);
    else parent[index] = operation.value;
    return;
  }
  if (operation.op !== 'add' && !Object.hasOwn(parent, step)) throw new Error('no such field');
  if (operation.op === 'remove') delete parent[step];
  else
    Object.defineProperty(parent, step, {
      value: operation.value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
};

const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);

describe('diffJson', () => {
  it('turns the first value into the second, whatever they are', () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        expect(applyPatch(a, diffJson(a, b))).toEqual(b);
      }),
    );
  });

  it('turns the first object into the second when they share most fields', () => {
    const fields = fc.dictionary(fc.constantFrom('a', 'b', 'a/b', 'm~n', '', '0'), fc.oneof(json, fc.array(json)));
    fc.assert(
      fc.property(fields, fields, (a, b) => {
        expect(applyPatch(a, diffJson(a, b))).toEqual(b);
      }),
    );
  });

  it('is empty for equal values', () => {
    fc.assert(
      fc.property(json, (a) => {
        expect(diffJson(a, structuredClone(a))).toEqual([]);
      }),
    );
  });

  it.each([
    [
      'adds only the missing field',
      { spec: { a: 1 } },
      { spec: { a: 1, b: 2 } },
      [{ op: 'add', path: '/spec/b', value: 2 }],
    ],
    [
      'adds a map that was absent as a whole',
      {},
      { labels: { 'x.y/z': 'v' } },
      [{ op: 'add', path: '/labels', value: { 'x.y/z': 'v' } }],
    ],
    ['escapes names', { l: {} }, { l: { 'x.y/z~': 'v' } }, [{ op: 'add', path: '/l/x.y~1z~0', value: 'v' }]],
    ['appends to a list', { l: [1] }, { l: [1, 2] }, [{ op: 'add', path: '/l/-', value: 2 }]],
    ['takes undefined as absent', { a: 1, b: undefined }, { a: undefined }, [{ op: 'remove', path: '/a' }]],
  ])('%s', (_name, before, after, patch) => {
    expect(diffJson(before, after)).toEqual(patch);
  });
});
