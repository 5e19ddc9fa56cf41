// Who owns whom, as the watches told. Holds facts only; collector.ts decides what they mean.
import type { KubeObject, ObjectKey, OwnerReference, ResourceType } from '#shared/api/object.ts';

/** What is remembered of one object. */
export interface Node {
  readonly type: ResourceType;
  readonly key: ObjectKey;
  readonly uid: string;
  readonly owners: readonly OwnerReference[];
  readonly finalizers: readonly string[];
  readonly isDeleting: boolean;
}

export interface Graph {
  put(type: ResourceType, object: KubeObject): Node;
  remove(uid: string): void;
  get(uid: string): Node | undefined;
  /** Objects that name `uid` as an owner. */
  dependentsOf(uid: string): readonly Node[];
}

export const toNode = (type: ResourceType, { metadata }: KubeObject): Node => ({
  type,
  key: { namespace: metadata.namespace, name: metadata.name },
  uid: metadata.uid ?? '',
  owners: metadata.ownerReferences ?? [],
  finalizers: metadata.finalizers ?? [],
  isDeleting: metadata.deletionTimestamp !== undefined,
});

export const createGraph = (): Graph => {
  const nodes = new Map<string, Node>();
  const dependents = new Map<string, Set<string>>();

  const unlink = (node: Node | undefined): void => {
    for (const { uid } of node?.owners ?? []) {
      const set = dependents.get(uid);
      set?.delete(node?.uid ?? '');
      if (set?.size === 0) dependents.delete(uid);
    }
  };

  return {
    put: (type, object) => {
      const node = toNode(type, object);
      unlink(nodes.get(node.uid));
      nodes.set(node.uid, node);
      for (const { uid } of node.owners) {
        const set = dependents.get(uid) ?? new Set<string>();
        dependents.set(uid, set.add(node.uid));
      }
      return node;
    },
    remove: (uid) => {
      unlink(nodes.get(uid));
      nodes.delete(uid);
    },
    get: (uid) => nodes.get(uid),
    dependentsOf: (uid) =>
      [...(dependents.get(uid) ?? [])].flatMap((dependent) => {
        const node = nodes.get(dependent);
        return node === undefined ? [] : [node];
      }),
  };
};
