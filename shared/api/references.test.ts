// Every text of every spec either is the name of an object, and can be nothing else, or stands in the list of those that are none.
import { describe, expect, it } from 'vitest';
import { NamespaceName, ObjectName } from '#shared/api/kind.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type StructuralSchema, toStructuralSchema } from '#shared/api/structural-schema.ts';

/** By the last step of their path, or the last two. */
const noNames = new Set([
  'url',
  'http',
  'imageStream',
  'pullMethod',
  'architecture',
  'tags',
  'checksum',
  'checksumURL',
  'extraHeaders[]',
  'description',
  'displayName',
  'createdBy',
  'schedule',
  'retentionPolicy',
  'cloneStrategy',
  'kind',
  'apiGroup',
  'dataImportCronSourceFormat',
  'bucketName',
  'objectName',
  'path',
  'previous',
  'current',
  'diskId',
  'uuid',
  'backingFile',
  'thumbprint',
  'initImageURL',
  'extraArgs',
  'storageClassParameters{}',
  'labels{}',
  'annotations{}',
  'matchLabels{}',
  'inline[]',
  'issuer',
  'subject',
  'subjectRegExp',
  'attestations[]',
  'checksums',
  'signature',
  'soak',
  'env[].name',
  'image',
  'command[]',
  'args[]',
  'value',
  'key',
  'timeout',
  'runningFor',
  'after',
  'obsoleteAfter',
  'maxAge',
  'unusedFor',
  'undeleteFor',
  'digest',
  'reason',
  'by',
  'at',
]);

interface Text {
  readonly path: readonly string[];
  readonly schema: StructuralSchema;
}

const textsOf = (schema: StructuralSchema, path: readonly string[]): readonly Text[] => {
  const { properties = {}, items, additionalProperties } = schema;
  const last = path.at(-1) ?? '';
  const named = (suffix: string) => [...path.slice(0, -1), `${last}${suffix}`];
  return [
    ...(schema.type === 'string' && schema.enum === undefined ? [{ path, schema }] : []),
    ...Object.entries(properties).flatMap(([key, one]) => textsOf(one, [...path, key])),
    ...(items === undefined ? [] : textsOf(items, named('[]'))),
    ...(additionalProperties === undefined ? [] : textsOf(additionalProperties, named('{}'))),
  ];
};

const texts = servedKinds.flatMap((kind) =>
  textsOf(toStructuralSchema(kind.spec), [`${kind.type.kind}.${kind.type.group}`]).map((text) => ({ kind, ...text })),
);
const endsOf = ({ path }: Text): readonly string[] => [path.at(-1) ?? '', path.slice(-2).join('.')];
const references = texts.filter((text) => !endsOf(text).some((end) => noNames.has(end)));

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

describe('references by name', () => {
  it('are all fields that are not known to be something else', () => {
    const patterns = [ObjectName, NamespaceName].map((name) => toStructuralSchema(name).pattern);
    expect(references.length).toBeGreaterThan(40);
    const loose = references.filter(({ schema }) => !patterns.includes(schema.pattern));
    expect(loose.map(({ path }) => path.join('.'))).toEqual([]);
    expect([...noNames].filter((name) => !texts.some((text) => endsOf(text).includes(name)))).toEqual([]);
  });

  it.each(references.map(({ kind, path, schema }) => ({ field: path.join('.'), kind, path, schema })))(
    '$field accepts only names',
    ({ kind, path, schema }) => {
      const steps = path.slice(1);
      const at = steps.join('.').replaceAll('[]', '.0').replaceAll('{}', '.key');
      const isFaulty = (value: string): boolean =>
        kind.spec.safeParse(around(steps, value)).error?.issues.some((issue) => issue.path.join('.') === at) === true;
      const isNamespace = schema.maxLength === 63 && /namespace$/i.test(path.at(-1)!);
      const bad = [...wrong, longName, ...(isNamespace ? ['a.b', longLabel] : [])];
      const good = right.filter((value) => value !== '' || schema.minLength === undefined);
      // The API server asks by the pattern, admission by the schema.
      expect(bad.filter((value) => matches(schema, value) || !isFaulty(value))).toEqual([]);
      expect(good.filter((value) => !matches(schema, value) || isFaulty(value))).toEqual([]);
    },
  );
});
