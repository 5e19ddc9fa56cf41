// Every text of every spec either is the name of an object, and can be nothing else, or is in the list of those that are not.
import { describe, expect, it } from 'vitest';
import type { StructuralSchema } from '#shared/api/structural-schema.ts';
import { fieldOf, isObjectName, listed, meaningOf, texts } from '#test/support/texts.ts';

/** `value` at a path, and the fields it requires. */
const around = (path: readonly string[], value: string): unknown =>
  path.reduceRight<unknown>((inner, step) => {
    const name = step.replace(/\[\]$|\{\}$/, '');
    if (step.endsWith('{}')) return { [name]: { key: inner } };
    return { [name]: step.endsWith('[]') ? [inner] : inner };
  }, value);

const [longLabel, longName] = ['a'.repeat(64), `${'a'.repeat(63)}.`.repeat(4)];
const wrong = [
  '../../tb/s',
  'a/b',
  '..',
  '.',
  'A',
  'a b',
  'a_b',
  '-a',
  'a-',
  '.a',
  'a.',
  'a..b',
  'a%2fb',
  'a\n',
  'ä',
  '\0',
];
const right = ['', 'a', '0', 'a-b', '0-9', 'a'.repeat(63)];
const matches = ({ pattern = '', maxLength = Infinity }: StructuralSchema, value: string): boolean =>
  new RegExp(pattern).test(value) && value.length <= maxLength;

const names = texts.filter(isObjectName);

describe('references by name', () => {
  it('are all texts that are not in the list: use ObjectName in the schema, or add the text to test/support/texts.ts', () => {
    const isToBeName = (meaning: ReturnType<typeof meaningOf>) => meaning === undefined || meaning === 'own';
    expect(names.length).toBeGreaterThan(90);
    expect(texts.filter((text) => isToBeName(meaningOf(text)) && !isObjectName(text)).map(fieldOf)).toEqual([]);
    expect(names.filter((text) => !isToBeName(meaningOf(text))).map(fieldOf)).toEqual([]);
    expect(listed.filter((field) => !texts.some((text) => fieldOf(text) === field))).toEqual([]);
  });

  it.each(names.map((text) => [`${fieldOf(text)} of ${text.kind.type.group}`, text] as const))(
    '%s accepts only names',
    (_title, { kind, path, schema }) => {
      const steps = path.split('.').slice(1);
      const at = steps.join('.').replaceAll('[]', '.0').replaceAll('{}', '.key');
      const isFaulty = (value: string): boolean =>
        kind.spec.safeParse(around(steps, value)).error?.issues.some((issue) => issue.path.join('.') === at) === true;
      const isNamespace = schema.maxLength === 63 && /namespace$/i.test(steps.at(-1)!);
      const bad = [...wrong, longName, ...(isNamespace ? ['a.b', longLabel] : [])];
      const good = right.filter((value) => value !== '' || schema.minLength === undefined);
      // The API server asks by the pattern, admission by the schema.
      expect(bad.filter((value) => matches(schema, value) || !isFaulty(value))).toEqual([]);
      expect(good.filter((value) => !matches(schema, value) || isFaulty(value))).toEqual([]);
    },
  );
});
