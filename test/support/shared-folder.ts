// CRDs of other projects and manifests of users, which are in a folder beside the repository during development, and never in it.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '#shared/api/object.ts';

const root = resolve(import.meta.dirname, '../..');

/** `<name>` of the folder beside the repository, or beside the folder of a worktree. Undefined if it is missing: skip. */
export const findShared = (name: string): string | undefined =>
  ['../shared', '../../shared'].map((place) => join(root, place, name)).find((folder) => existsSync(folder));

/** A CRD as published by its project. */
export interface UpstreamCrd extends KubeObject {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: object } }[];
  };
}

/** Every CRD of the current version in these folders of `shared/crds`; empty if they are missing. */
export const readUpstreamCrds = (folder = '.'): readonly UpstreamCrd[] => {
  const found = findShared(join('crds', folder));
  if (found === undefined) return [];
  return globSync('**/*.yaml', { cwd: found })
    .toSorted()
    .flatMap((file) => parseAllDocuments(readFileSync(join(found, file), 'utf8')))
    .map((document) => document.toJS() as UpstreamCrd | null)
    .filter(
      (crd) => crd?.kind === 'CustomResourceDefinition' && crd.apiVersion === 'apiextensions.k8s.io/v1',
    ) as readonly UpstreamCrd[];
};
