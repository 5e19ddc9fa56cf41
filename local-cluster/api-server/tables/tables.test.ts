import { describe, expect, test } from 'vitest';
import { toAge, toSpan } from '#shared/runtime/age.ts';
import { customShape } from './columns.ts';
import { compileJsonPath } from './json-path.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

describe('toSpan', () => {
  test.each([
    [0, '0s'],
    [119 * second, '119s'],
    [2 * minute, '2m'],
    [5 * minute + 30 * second, '5m30s'],
    [10 * minute + 30 * second, '10m'],
    [3 * hour, '3h'],
    [3 * hour + 12 * minute, '3h12m'],
    [9 * hour + 12 * minute, '9h'],
    [47 * hour, '47h'],
    [2 * day + 4 * hour, '2d4h'],
    [15 * day, '15d'],
    [800 * day, '2y70d'],
    [9 * 365 * day, '9y'],
  ])('%d ms is formatted as %s', (span, text) => {
    expect(toSpan(span)).toBe(text);
  });

  test('a missing time is unknown', () => {
    expect(toAge(undefined, new Date())).toBe('<unknown>');
  });
});

describe('compileJsonPath', () => {
  const object = {
    spec: {
      size: 3,
      'dotted.key': 'x',
      list: [
        { name: 'a', v: 1 },
        { name: 'b', v: 2 },
      ],
    },
    status: {
      conditions: [
        { type: 'Other', status: 'False' },
        { type: 'Ready', status: 'True' },
      ],
    },
  };
  test.each([
    ['.spec.size', [3]],
    ['.spec.list[1].name', ['b']],
    ['.spec.list[-1].name', ['b']],
    ['.spec.list[*].name', ['a', 'b']],
    [".spec['dotted.key']", ['x']],
    [String.raw`.spec.dotted\.key`, ['x']],
    ['.status.conditions[?(@.type=="Ready")].status', ['True']],
    ['.spec.list[?(@.v>1)].name', ['b']],
    ['.spec.none.deeper', []],
    ['{.spec.size}', [3]],
  ])('%s', (path, found) => {
    expect(compileJsonPath(path)(object)).toEqual(found);
  });
});

describe('customShape', () => {
  const now = new Date('2026-01-01T00:01:00Z');
  const row = (column: Record<string, unknown>, object: Record<string, unknown>) =>
    customShape([{ name: 'X', ...column }]).cells(
      { apiVersion: 'v1', kind: 'X', metadata: { name: 'a' }, ...object },
      now,
    )[1];

  test('a value of a different type than its column is not shown', () => {
    expect(row({ type: 'integer', jsonPath: '.spec.a' }, { spec: { a: 'x' } })).toBeNull();
  });
  test('a date is shown as an age', () => {
    expect(row({ type: 'date', jsonPath: '.spec.a' }, { spec: { a: '2026-01-01T00:00:00Z' } })).toBe('60s');
  });
  test('a missing value results in an empty cell', () => {
    expect(row({ type: 'string', jsonPath: '.spec.a' }, {})).toBeNull();
  });
  test('a structure is shown as JSON', () => {
    expect(row({ type: 'string', jsonPath: '.spec.a' }, { spec: { a: { b: 1 } } })).toBe('{"b":1}');
  });
});
