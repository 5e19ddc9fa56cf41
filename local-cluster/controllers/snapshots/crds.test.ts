import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { describe, expect, it } from 'vitest';
import { snapshotCrds } from '#local-cluster/controllers/snapshots/crds.ts';
import { findShared } from '#test/support/shared-folder.ts';

/** The definitions as published by their project, if they are next to the repository. */
const reference = findShared('crds/snapshot');

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}
interface Crd {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly names: object;
    readonly scope: string;
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
      readonly subresources?: object;
    }[];
  };
}

/** Paths of all fields, each with its type. */
const fieldsOf = (schema: Schema, path = ''): readonly string[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, child]) => [
    `${path}.${name}: ${child.type ?? 'any'}`,
    ...fieldsOf(child, `${path}.${name}`),
  ]);
const v1Of = (crd: Crd) => crd.spec.versions.find(({ name }) => name === 'v1');

describe('the snapshot kinds of the local cluster', () => {
  it.skipIf(reference === undefined)(
    'have the names, scope and fields that their project publishes, and no others',
    () => {
      const folder = reference ?? '';
      const published = readdirSync(folder).flatMap((file) =>
        parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document) => document.toJS() as Crd | null),
      );
      for (const ours of snapshotCrds as unknown as readonly Crd[]) {
        const theirs = published.find((crd) => crd?.metadata.name === ours.metadata.name);
        expect(ours.spec.names).toEqual(theirs?.spec.names);
        expect(ours.spec.scope).toBe(theirs?.spec.scope);
        const [own, original] = [ours, theirs!].map(
          (crd) => new Set(fieldsOf(v1Of(crd)?.schema.openAPIV3Schema ?? {})),
        );
        expect([...own!].filter((field) => !original!.has(field))).toEqual([]);
        expect([...original!].filter((field) => !own!.has(field))).toEqual([]);
      }
    },
  );
});
