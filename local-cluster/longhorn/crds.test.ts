// The stand-in is held against Longhorn's own definitions: the same fields, and whatever it or our backend writes is valid there.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { type JsonSchema, validateObject } from '#local-cluster/api-server/schema/structural.ts';
import { longhornCrds } from '#local-cluster/longhorn/crds.ts';
import { aBackingImage } from '#test/support/builders.ts';
import { findShared } from '#test/support/shared-folder.ts';

/** The definitions as their own project publishes them, where they lie beside the repository. */
const reference = findShared('crds/longhorn');

interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
}
interface Crd {
  readonly spec: {
    readonly scope: string;
    readonly names: object;
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: Schema } }[];
  };
}

const schemaOf = ({ spec }: Crd): Schema =>
  spec.versions.find(({ name }) => name === 'v1beta2')!.schema.openAPIV3Schema;

/** Paths of all fields, each with its type and values. */
const fieldsOf = (schema: Schema, path = ''): readonly string[] => [
  ...Object.entries(schema.properties ?? {}).flatMap(([name, child]) => [
    `${path}.${name}: ${child.type ?? 'any'} ${(child.enum ?? []).join('|')}`,
    ...fieldsOf(child, `${path}.${name}`),
  ]),
  ...(schema.additionalProperties === undefined ? [] : fieldsOf(schema.additionalProperties, `${path}.*`)),
];

const published = (plural: string): Crd => parse(readFileSync(join(reference ?? '', `${plural}.yaml`), 'utf8')) as Crd;

describe.skipIf(reference === undefined)('the Longhorn kinds of the local cluster', () => {
  it.each(longhornCrds.map((crd) => [crd.metadata.name.split('.')[0] ?? '', crd as unknown as Crd] as const))(
    '%s have the names, scope and fields that their own project publishes, and no others',
    (plural, ours) => {
      const theirs = published(plural);
      expect(ours.spec.names).toEqual(theirs.spec.names);
      expect(ours.spec.scope).toBe(theirs.spec.scope);
      expect(fieldsOf(schemaOf(ours)).toSorted()).toEqual(fieldsOf(schemaOf(theirs)).toSorted());
    },
  );

  it('a backing image of ours is one of theirs', () => {
    const schema = schemaOf(published('backingimages')) as unknown as JsonSchema;
    const object = JSON.parse(JSON.stringify(aBackingImage([{ state: 'ready', progress: 100 }]))) as Parameters<
      typeof validateObject
    >[1];
    expect(validateObject(schema, object)).toEqual([]);
  });
});
