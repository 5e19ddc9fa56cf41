// What admission found that the author of an object may use, written on the object: later passes act under an account of ours and for
// nobody, so they ask the grant. See README.md for why it cannot be forged.
import { z } from 'zod';
import { annotations, unguardedNamespaces } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';

/** Ways to use what lies elsewhere; `sources.ts` has the rights each of them takes. */
export type SourceUse = 'clone-claim' | 'clone-snapshot' | 'export-claim' | 'use-image' | 'read-secret';

/** Content that is to be used, and how. */
export interface UsedSource {
  readonly use: SourceUse;
  readonly namespace: string;
  readonly name: string;
}

/** Whether the author of an object may have what lies elsewhere. */
export type MayUse = (source: UsedSource) => boolean;

/** Name of a source that stands for whatever is in its namespace. */
export const anyName = '*';

const Grants = z.array(z.object({ use: z.string(), namespace: z.string(), name: z.string() }));
export type Grant = z.infer<typeof Grants>[number];

const isGuarded = ({ metadata }: KubeObject): boolean =>
  !(unguardedNamespaces as readonly string[]).includes(metadata.namespace ?? '');

/** What admission wrote down. Plain data: what a decision was made from is compared before its status is written. */
export const readGrants = (object: KubeObject): readonly Grant[] => {
  if (!isGuarded(object)) return [];
  try {
    return Grants.parse(JSON.parse(object.metadata.annotations?.[annotations.granted] ?? '[]'));
  } catch {
    return [];
  }
};

/** Value of the annotation; `undefined`: the object needs none. */
export const toGrantText = (grants: readonly Grant[]): string | undefined =>
  grants.length === 0
    ? undefined
    : JSON.stringify(grants.map(({ use, namespace, name }) => ({ use, namespace, name })));

/**
 * Whether an object may be made from a source. The object's own namespace is its author's to use; anything else was granted at admission, or
 * it is not. Ask with the source as it is now: what a reference points to may have moved since.
 */
export const mayUseOf =
  (own: string | undefined, grants: readonly Grant[] = []): MayUse =>
  ({ use, namespace, name }) =>
    namespace === own ||
    grants.some(
      (grant) => grant.use === use && grant.namespace === namespace && (grant.name === anyName || grant.name === name),
    );

/** The same of an object. */
export const isGranted = (object: KubeObject, source: UsedSource): boolean =>
  mayUseOf(object.metadata.namespace, readGrants(object))(source);
