// Whatever the schemas of the served kinds accept gets an answer, in time, and mutation settles at once.
import { readFileSync, readdirSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp } from '#functions/validate/app.ts';
import type { AdmissionResponse } from '#shared/api/admission.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Draft, ask, clusterOf, patched, withAccess } from '#test/support/admission.ts';

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
}
interface Crd {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: Schema } }[];
  };
}

/** Strings with a special meaning in rules, among any others. */
const texts = [
  '',
  '10Gi',
  '-1',
  'docker://a/b',
  'https://images.example/a',
  'http://[',
  's3://a/b',
  'a:b',
  'sha256:00',
];

const anyText = ({ minLength = 0, maxLength = 80 }: Schema): fc.Arbitrary<unknown> =>
  fc
    .oneof(fc.constantFrom(...texts), fc.string({ maxLength: 80 }))
    .filter(({ length }) => length >= minLength && length <= maxLength);

const anyNumber = ({ minimum = -5, maximum = 1000 }: Schema): fc.Arbitrary<unknown> =>
  fc.integer({ min: minimum, max: Math.min(maximum, 2 ** 31) });

const anyList = ({ items = {}, minItems = 0, maxItems = 3 }: Schema, depth: number): fc.Arbitrary<unknown> =>
  fc.array(any(items, depth - 1), { minLength: minItems, maxLength: Math.min(maxItems, 3) });

const any = (schema: Schema, depth: number): fc.Arbitrary<unknown> => {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case 'boolean':
      return fc.boolean();
    case 'integer':
    case 'number':
      return anyNumber(schema);
    case 'array':
      return anyList(schema, depth);
    case 'object':
      return anyObject(schema, depth);
    default:
      return anyText(schema);
  }
};

const anyObject = ({ properties, required = [], additionalProperties }: Schema, depth: number) => {
  if (properties === undefined) {
    return fc.dictionary(fc.constantFrom('a', 'storage'), any(additionalProperties ?? {}, depth - 1), { maxKeys: 2 });
  }
  const taken = Object.entries(properties).filter(([name]) => depth > 0 || required.includes(name));
  const fields = Object.fromEntries(taken.map(([name, field]) => [name, any(field, depth - 1)]));
  return fc.record(fields, { requiredKeys: [...required].filter((name) => name in fields) });
};

const folder = new URL('../../infra/crds/', import.meta.url);
const crds = readdirSync(folder)
  .filter((file) => file.includes('_'))
  .map((file) => parse(readFileSync(new URL(file, folder), 'utf8')) as Crd);

const kube = withAccess(clusterOf(), () => true);
const fieldsOf = ({ status }: AdmissionResponse): readonly string[] =>
  status?.details?.causes?.map(({ field }) => field) ?? [];
const validate = createApp({ kube, log: silentLogger });
const mutate = createMutate({ kube, log: silentLogger });

describe.each(crds.map((crd) => [`${crd.spec.names.plural}.${crd.spec.group}`, crd] as const))(
  'any of %s',
  (_name, crd) => {
    const { group, names, versions } = crd.spec;
    const [version] = versions;
    const spec = version?.schema.openAPIV3Schema.properties?.['spec'] ?? {};
    const drafts = any(spec, 5).map((made): Draft => ({
      apiVersion: `${group}/${version?.name}`,
      kind: names.kind,
      metadata: { name: 'any', namespace: 'default', uid: 'uid-1' },
      spec: JSON.parse(JSON.stringify(made ?? {})) as Record<string, unknown>,
    }));

    it('is answered, and mutation is idempotent', async () => {
      await fc.assert(
        fc.asyncProperty(drafts, async (object) => {
          const once = patched(object, await ask(mutate, '/mutate', { object }));
          expect(patched(once, await ask(mutate, '/mutate', { object: once }))).toEqual(once);
          // Anything but an answer throws: a budget that is up is HTTP 500.
          expect(typeof (await ask(validate, '/validate', { object: once })).allowed).toBe('boolean');
        }),
        { numRuns: 60 },
      );
    });

    it('is not rejected for fields that its author did not set', async () => {
      await fc.assert(
        fc.asyncProperty(drafts, async (object) => {
          const filled = patched(object, await ask(mutate, '/mutate', { object }));
          const answer = await ask(validate, '/validate', { object: filled });
          // When a grant is needed, only grants written by mutation are accepted.
          const plain = await ask(validate, '/validate', { object }).catch(() => answer);
          expect(answer.allowed || !plain.allowed).toBe(true);
          expect(fieldsOf(plain)).toEqual(expect.arrayContaining([...fieldsOf(answer)]));
        }),
        { numRuns: 60 },
      );
    });
  },
);
