// What objects have in common that would hold the same bytes: they find each other by it, and hear of each other's end. Called by reconciled kinds.
import type { ObjectRef } from '#shared/api/object.ts';
import type { Owner } from '#shared/api/owner.ts';

/** Among the kinds of things that are waited for. */
export const contentGroupKind = 'Content';

/** `undefined` where nobody knows beforehand what it will hold. */
export const contentLinkOf = (
  { namespace = 'default' }: ObjectRef,
  content: string | undefined,
): Omit<Owner, 'uid'> | undefined =>
  content === undefined ? undefined : { groupKind: contentGroupKind, namespace, name: content };
