// The reference from a child to its owner. Written when children are built, read to find the owner of a child.
import { createHash } from 'node:crypto';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject, ObjectMeta, ObjectRef } from '#shared/api/object.ts';

/** The owner according to a child. Without API version: the owner's kind may have a newer one since. */
export interface Owner {
  readonly uid: string;
  /** `<kind>.<group>`, as in the owner-kind label. */
  readonly groupKind: string;
  readonly namespace: string;
  readonly name: string;
}

/** `<kind>.<group>` of an object or reference; the bare kind for the core group. */
export const groupKindOf = ({ apiVersion, kind }: Pick<ObjectRef, 'apiVersion' | 'kind'>): string => {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? kind : `${kind}.${apiVersion.slice(0, slash)}`;
};

/** Metadata of a child in its owner's namespace: found by label, garbage-collected by owner reference. */
export const childMetadata = (owner: ObjectRef, role: string, name: string): ObjectMeta => ({
  name,
  ...(owner.namespace === undefined ? {} : { namespace: owner.namespace }),
  labels: {
    'app.kubernetes.io/managed-by': 'bullion',
    [labels.ownerUid]: owner.uid,
    [labels.ownerKind]: groupKindOf(owner),
    [labels.role]: role,
  },
  annotations: {
    [annotations.ownerName]: owner.name,
    [annotations.ownerNamespace]: owner.namespace ?? '',
  },
  ownerReferences: [
    {
      apiVersion: owner.apiVersion,
      kind: owner.kind,
      name: owner.name,
      uid: owner.uid,
      controller: true,
      blockOwnerDeletion: true,
    },
  ],
});

/** A child in another namespace than its owner, where owner references are not possible: its owner has to remove it. */
export const movedTo = <T extends KubeObject>(child: T, namespace: string): T => {
  const { ownerReferences: _, ...metadata } = child.metadata;
  return { ...child, metadata: { ...metadata, namespace } };
};

/** `undefined` for objects of others. */
export const ownerOf = (object: KubeObject): Owner | undefined => {
  const uid = object.metadata.labels?.[labels.ownerUid];
  const groupKind = object.metadata.labels?.[labels.ownerKind];
  const name = object.metadata.annotations?.[annotations.ownerName];
  const namespace = object.metadata.annotations?.[annotations.ownerNamespace];
  if (uid === undefined || groupKind === undefined || name === undefined || namespace === undefined) return undefined;
  return { uid, groupKind, namespace, name };
};

/** Whether a child belongs to the object with this UID. A label alone proves nothing if the child has another controller. */
export const isOwnedBy = (object: KubeObject, uid: string): boolean => {
  if (object.metadata.labels?.[labels.ownerUid] !== uid) return false;
  const controller = object.metadata.ownerReferences?.find((reference) => reference.controller === true);
  return controller === undefined || controller.uid === uid;
};

/** Label selector of all children of one owner. */
export const childrenOf = (uid: string): string => `${labels.ownerUid}=${uid}`;

/**
 * Value of the source label for one object, whatever its name and namespace: a valid label value, deterministic. Derived from the name instead
 * of the UID, since the source may be created later.
 */
export const sourceLabel = (source: Omit<Owner, 'uid'>): string =>
  createHash('sha256').update(`${source.groupKind}/${source.namespace}/${source.name}`).digest('hex').slice(0, 40);
