// Permissions of the author of an object, recorded on the object at admission: later passes run with our own service account and without a
// requester, so they use the grant. See README.md for why it cannot be forged.
import { z } from 'zod';
import { annotations, unguardedNamespaces } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';

/** Uses of objects in other namespaces; `sources.ts` lists the permissions for each. */
export type SourceUse = 'clone-claim' | 'clone-snapshot' | 'export-claim' | 'use-image' | 'read-secret';

/** A source and its use. */
export interface UsedSource {
  readonly use: SourceUse;
  readonly namespace: string;
  readonly name: string;
}

/** Whether the author of an object may use a source in another namespace. */
export type MayUse = (source: UsedSource) => boolean;

/** Matches every source of its namespace. */
export const anyName = '*';

const Grants = z.array(z.object({ use: z.string(), namespace: z.string(), name: z.string() }));
export type Grant = z.infer<typeof Grants>[number];

const isGuarded = ({ metadata }: KubeObject): boolean =>
  !(unguardedNamespaces as readonly string[]).includes(metadata.namespace ?? '');

/** The grants recorded by admission, as plain data: they are part of the compared input of a decision. */
export const readGrants = (object: KubeObject): readonly Grant[] => {
  if (!isGuarded(object)) return [];
  try {
    return Grants.parse(JSON.parse(object.metadata.annotations?.[annotations.granted] ?? '[]'));
  } catch {
    return [];
  }
};

/** Value of the annotation; `undefined`: no grant is needed. */
export const toGrantText = (grants: readonly Grant[]): string | undefined =>
  grants.length === 0
    ? undefined
    : JSON.stringify(grants.map(({ use, namespace, name }) => ({ use, namespace, name })));

/**
 * Whether an object may be made from a source. The author may use the object's own namespace; any other source must have been granted at
 * admission. Call it with the current source: the target of a reference may have changed since.
 */
export const mayUseOf =
  (own: string | undefined, grants: readonly Grant[] = []): MayUse =>
  ({ use, namespace, name }) =>
    namespace === own ||
    grants.some(
      (grant) => grant.use === use && grant.namespace === namespace && (grant.name === anyName || grant.name === name),
    );

/** The same for an object. */
export const isGranted = (object: KubeObject, source: UsedSource): boolean =>
  mayUseOf(object.metadata.namespace, readGrants(object))(source);
