// The part of a Kubernetes object that every kind shares.
import { createHash } from 'node:crypto';
import { annotations, labels } from './names.ts';

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly generateName?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

export interface KubeList<T extends KubeObject> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly T[];
}

/** Addresses a kind. `T` binds the descriptor to the type of its objects. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Never set: carries `T` for inference only. */
  readonly type?: T;
}

/** Identifies an object within its kind. Cluster-scoped kinds have no `namespace`. */
export interface ObjectKey {
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** Identifies an object and its kind. */
export interface ObjectRef extends ObjectKey {
  readonly apiVersion: string;
  readonly kind: string;
  readonly uid: string;
}

export const apiVersionOf = (type: Pick<ResourceType, 'group' | 'version'>): string =>
  type.group === '' ? type.version : `${type.group}/${type.version}`;

export const isOfType = <T extends KubeObject>(
  object: Pick<KubeObject, 'apiVersion' | 'kind'>,
  type: ResourceType<T>,
): object is T => object.kind === type.kind && object.apiVersion === apiVersionOf(type);

export const keyOf = (object: KubeObject): ObjectKey => ({
  ...(object.metadata.namespace === undefined ? {} : { namespace: object.metadata.namespace }),
  name: object.metadata.name,
});

export const refOf = (object: KubeObject): ObjectRef => ({
  apiVersion: object.apiVersion,
  kind: object.kind,
  uid: object.metadata.uid ?? '',
  ...keyOf(object),
});

/** A condition as in `metav1.Condition`. Times are RFC 3339. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
  readonly lastTransitionTime?: string;
}

// The reference from a child to its owner. Written when children are built, read to find the owner of a child.

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

/** Made for the object with this UID, by its previous controller or without our labels. A UID is never that of another object. */
export const isLeftBy = ({ metadata }: KubeObject, uid: string): boolean =>
  metadata.ownerReferences?.some((reference) => reference.controller === true && reference.uid === uid) === true;

/** Label selector of all children of one owner. */
export const childrenOf = (uid: string): string => `${labels.ownerUid}=${uid}`;

/**
 * Value of the source label for one object, whatever its name and namespace: a valid label value, deterministic. Derived from the name instead
 * of the UID, since the source may be created later.
 */
export const sourceLabel = (source: Omit<Owner, 'uid'>): string =>
  createHash('sha256').update(`${source.groupKind}/${source.namespace}/${source.name}`).digest('hex').slice(0, 40);
