import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { toStructuralSchema } from '#shared/api/structural-schema.ts';

const table: readonly (readonly [string, z.ZodType, unknown])[] = [
  ['a string', z.string(), { type: 'string' }],
  [
    'bounds and pattern',
    z.string().min(1).max(4).regex(/^a/),
    { type: 'string', minLength: 1, maxLength: 4, pattern: '^a' },
  ],
  ['an integer without the bounds of a double', z.int(), { type: 'integer', format: 'int64' }],
  ['an integer with one bound', z.int().min(0), { type: 'integer', format: 'int64', minimum: 0 }],
  [
    'an integer with both bounds',
    z.int().min(0).max(10),
    { type: 'integer', format: 'int64', minimum: 0, maximum: 10 },
  ],
  ['an int32', z.int32(), { type: 'integer', format: 'int32' }],
  ['an int32 with a bound', z.int32().min(1), { type: 'integer', format: 'int32', minimum: 1 }],
  ['a number', z.number().min(0).max(1), { type: 'number', minimum: 0, maximum: 1 }],
  ['a date without its regular expression', z.iso.datetime(), { type: 'string', format: 'date-time' }],
  ['an enum', z.enum(['a', 'b']), { type: 'string', enum: ['a', 'b'] }],
  ['a literal', z.literal('a'), { type: 'string', enum: ['a'] }],
  ['a union of enums', z.union([z.literal('a'), z.enum(['b', 'a'])]), { type: 'string', enum: ['a', 'b'] }],
  ['nullable', z.string().nullable(), { type: 'string', nullable: true }],
  ['a default', z.boolean().default(true), { type: 'boolean', default: true }],
  ['a description', z.string().describe('words'), { type: 'string', description: 'words' }],
  [
    'a number or a string',
    z.union([z.int(), z.string().regex(/^\d+%?$/)]),
    { anyOf: [{ type: 'integer' }, { type: 'string' }], pattern: '^\\d+%?$', 'x-kubernetes-int-or-string': true },
  ],
  [
    'a string marked as a number or a string',
    z.string().meta({ 'x-kubernetes-int-or-string': true }),
    { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true },
  ],
  ['unknown', z.unknown(), { 'x-kubernetes-preserve-unknown-fields': true }],
  ['a map', z.record(z.string(), z.string()), { type: 'object', additionalProperties: { type: 'string' } }],
  [
    'a map of anything',
    z.record(z.string(), z.unknown()),
    { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  ],
  [
    'a loose object',
    z.looseObject({ a: z.string() }),
    {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      'x-kubernetes-preserve-unknown-fields': true,
    },
  ],
  [
    'a strict object',
    z.strictObject({ a: z.string().optional() }),
    { type: 'object', properties: { a: { type: 'string' } } },
  ],
  ['an empty object', z.object({}), { type: 'object' }],
  [
    'a list with keys',
    z
      .array(z.object({ type: z.string() }))
      .max(8)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] }),
    {
      type: 'array',
      items: { type: 'object', properties: { type: { type: 'string' } }, required: ['type'] },
      maxItems: 8,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    },
  ],
  [
    'CEL rules',
    z.string().meta({ 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'immutable' }] }),
    { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'immutable' }] },
  ],
  [
    'optional and defaulted fields, which are not required',
    z.object({ a: z.string(), b: z.string().optional(), c: z.int().default(3) }),
    {
      type: 'object',
      properties: {
        a: { type: 'string' },
        b: { type: 'string' },
        c: { type: 'integer', format: 'int64', default: 3 },
      },
      required: ['a'],
    },
  ],
];

describe('toStructuralSchema', () => {
  it.each(table)('converts %s', (_name, type, expected) => {
    expect(toStructuralSchema(type)).toEqual(expected);
  });

  it.each([
    ['a union of objects', z.object({ a: z.object({ b: z.union([z.object({}), z.string()]) }) }), '.a.b: a union'],
    ['named fields with a typed rest', z.object({ a: z.string() }).catchall(z.string()), '(root): named fields'],
    [
      'an unknown keyword',
      z.object({ a: z.string().meta({ owner: 'x' }) }),
      '.a: a structural schema cannot have owner',
    ],
    ['a tuple', z.object({ a: z.array(z.tuple([z.string()])) }), '.a[]'],
  ])('rejects %s and names the field', (_name, type, message) => {
    expect(() => toStructuralSchema(type)).toThrow(message);
  });
});
