// The owners of objects, as observed by watches. Contains facts only; collector.ts decides what they mean.
import type { KubeObject, ObjectKey, OwnerReference, ResourceType } from '#shared/api/object.ts';

/** The recorded facts about one object. */
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
  /** Objects that refer to `uid` as an owner. */
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

/** The decision about one object, from its owners and dependents. Pure; follows the rules of Kubernetes' garbage collector. */
export const foreground = 'foregroundDeletion';
export const orphan = 'orphan';

/** The state of one owner. `unknown`: its kind is not served at the moment, so its absence must not lead to a deletion. */
export type OwnerState = 'present' | 'absent' | 'leaving-foreground' | 'unknown';

type Verdict =
  | { readonly do: 'nothing' }
  /** The state of an owner is unknown: check again later. */
  | { readonly do: 'ask-again' }
  | { readonly do: 'delete'; readonly propagation: 'Background' | 'Foreground' | 'Orphan' }
  /** It has another owner that exists: only the references to the others are removed. */
  | { readonly do: 'drop-owners'; readonly uids: readonly string[] };

/** For an object that is not being deleted: whether it is kept. */
export const judge = (
  node: Node,
  owners: readonly (readonly [OwnerReference, OwnerState])[],
  hasDependents: boolean,
): Verdict => {
  const inState = (...states: readonly OwnerState[]): readonly string[] =>
    owners.filter(([, state]) => states.includes(state)).map(([{ uid }]) => uid);
  if (owners.length === 0) return { do: 'nothing' };
  const gone = inState('absent', 'leaving-foreground');
  if (inState('present').length > 0) return gone.length === 0 ? { do: 'nothing' } : { do: 'drop-owners', uids: gone };
  if (inState('unknown').length > 0) return { do: 'ask-again' };
  return { do: 'delete', propagation: propagationOf(node, inState('leaving-foreground').length > 0 && hasDependents) };
};

const propagationOf = (node: Node, isOwnerWaiting: boolean): 'Background' | 'Foreground' | 'Orphan' => {
  if (node.finalizers.includes(orphan)) return 'Orphan';
  return isOwnerWaiting || node.finalizers.includes(foreground) ? 'Foreground' : 'Background';
};

/** For an object deleted in the foreground: whether every dependent that blocks it is deleted. */
export const isUnblocked = (node: Node, dependents: readonly Node[]): boolean =>
  !dependents.some(({ owners }) =>
    owners.some(({ uid, blockOwnerDeletion }) => uid === node.uid && blockOwnerDeletion === true),
  );
