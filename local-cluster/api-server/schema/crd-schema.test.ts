import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { findShared } from '#test/support/shared-folder.ts';
import { validateCrdSchema } from './crd-schema.ts';
import type { Json } from './json.ts';
import type { JsonSchema, ValidationRule } from './json-schema.ts';

const faults = (spec: JsonSchema, root: JsonSchema = {}): string[] =>
  validateCrdSchema({ type: 'object', properties: { spec }, ...root }, 'schema', true).map(
    (cause) => `${cause.field}: ${cause.message}`,
  );

describe('validateCrdSchema', () => {
  const at = 'schema.properties[spec]';
  const cases: [string, JsonSchema, string[]][] = [
    ['a field without a type', {}, [`${at}.type: Required value: must not be empty for specified object fields`]],
    ['an array without items', { type: 'array' }, [`${at}.items: Required value: must be specified`]],
    [
      'an unknown type',
      { type: 'text' },
      [
        `${at}.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"`,
      ],
    ],
    [
      'uniqueItems',
      { type: 'array', items: { type: 'string' }, uniqueItems: true },
      [
        `${at}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
      ],
    ],
    [
      'properties beside additionalProperties',
      { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } },
      [`${at}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`],
    ],
    [
      'a type under anyOf',
      { type: 'string', anyOf: [{ type: 'string' }] },
      [`${at}.anyOf[0].type: Forbidden: must be empty to be structural`],
    ],
    [
      'a default of another type',
      { type: 'integer', default: 'x' },
      [`${at}.default: Invalid value: "string":  in body must be of type integer: "string"`],
    ],
    [
      'a default with unknown fields',
      { type: 'object', default: { a: 1 }, properties: { b: { type: 'string' } } },
      [`${at}.default: Invalid value: {"a":1}: must not have unknown fields`],
    ],
    [
      'a list map without keys',
      { type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object' } },
      [`${at}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`],
    ],
    [
      'an optional list map key',
      {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['a'],
        items: { type: 'object', properties: { a: { type: 'string' } } },
      },
      [
        `${at}.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
      ],
    ],
    [
      'preserve-unknown-fields: false',
      { type: 'object', 'x-kubernetes-preserve-unknown-fields': false },
      [`${at}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined`],
    ],
    [
      'an invalid pattern',
      { type: 'string', pattern: '(' },
      [
        `${at}.pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): \`(\``,
      ],
    ],
  ];
  it.each(cases)('rejects %s', (_, schema, expected) => {
    expect(faults(schema)).toEqual(expected);
  });

  it('accepts the pair of types of int-or-string', () => {
    expect(faults({ 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] })).toEqual(
      [],
    );
  });

  it('rejects a field at the root that is only restricted', () => {
    expect(faults({ type: 'object' }, { oneOf: [{ properties: { a: { pattern: 'x' } } }] }).at(-1)).toBe(
      'schema.properties[a]: Required value: because it is defined in schema.oneOf[0].properties[a]',
    );
  });

  it('accepts restrictions of metadata only for the name', () => {
    const metadata = { type: 'object', properties: { name: { type: 'string', maxLength: 3 } } };
    expect(faults({ type: 'object' }, { properties: { metadata } })).toEqual([]);
    expect(
      faults(
        { type: 'object' },
        { properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } },
      ),
    ).toEqual([
      'schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
    ]);
  });
});

describe('rules of a CRD', () => {
  const withRule = (schema: JsonSchema, rule: ValidationRule): string[] =>
    faults({ ...schema, 'x-kubernetes-validations': [rule] });
  const group: JsonSchema = { type: 'object', properties: { a: { type: 'integer' } } };

  it('must compile', () => {
    expect(withRule(group, { rule: 'self.b > 1' })).toEqual([
      'schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.b \\u003e 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field \'b\'\n | self.b > 1\n | ....^',
    ]);
  });

  it.each([
    ['a wrong comparison', { rule: 'self.a == "x"' }, 'found no matching overload'],
    ['a number as result', { rule: 'self.a + 1' }, 'cel expression must evaluate to a bool'],
    [
      'a bad message expression',
      { rule: 'self.a > 1', messageExpression: 'self.a' },
      'messageExpression must evaluate to a string',
    ],
    ['an unknown reason', { rule: 'self.a > 1', reason: 'Bad' }, 'Unsupported value: "Bad"'],
    [
      'optionalOldSelf without oldSelf',
      { rule: 'self.a > 1', optionalOldSelf: true },
      'may not be set if oldSelf is not used in rule',
    ],
    ['no rule', { rule: ' ' }, 'rule is not specified'],
  ])('rejects %s', (_, rule, part) => {
    expect(withRule(group, rule).join('\n')).toContain(part);
  });

  it('cannot read old values where items cannot be correlated', () => {
    const items: JsonSchema = { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self >= oldSelf' }] };
    expect(faults({ type: 'array', items })).toEqual([
      'schema.properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: "self >= oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within schema.properties[spec]',
    ]);
  });
});

interface Crd {
  readonly kind?: string;
  readonly spec: {
    /** Missing in the old form, which has one schema for all versions. */
    readonly versions?: readonly {
      readonly name: string;
      readonly schema?: { readonly openAPIV3Schema: JsonSchema };
      readonly subresources?: { readonly status?: Json };
    }[];
  };
}

const shared = findShared('crds');

describe.skipIf(shared === undefined)('upstream CRDs', () => {
  const files = shared === undefined ? [] : globSync(`${shared}/**/*.yaml`);

  it.each(files.map((file) => [file.replace(/.*\/crds\//, ''), file]))('%s is accepted', (_, file) => {
    const crds = parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as Crd | null);
    for (const crd of crds)
      for (const version of crd?.kind === 'CustomResourceDefinition' ? (crd.spec.versions ?? []) : [])
        expect(
          validateCrdSchema(
            version.schema?.openAPIV3Schema ?? { type: 'object' },
            'schema',
            version.subresources?.status !== undefined,
          ),
        ).toEqual([]);
  });
});
