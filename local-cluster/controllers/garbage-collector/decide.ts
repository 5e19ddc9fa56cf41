// What becomes of one object, from its owners and dependents. Pure; follows the rules of Kubernetes' garbage collector.
import type { OwnerReference } from '#shared/api/object.ts';
import type { Node } from '#local-cluster/controllers/garbage-collector/graph.ts';

export const foreground = 'foregroundDeletion';
export const orphan = 'orphan';

/** What is known of one owner. `unknown`: it cannot be told now (its kind is not served), so nothing may be deleted for its absence. */
export type OwnerState = 'present' | 'absent' | 'leaving-foreground' | 'unknown';

export type Verdict =
  | { readonly do: 'nothing' }
  /** An owner's whereabouts cannot be told: ask again later. */
  | { readonly do: 'ask-again' }
  | { readonly do: 'delete'; readonly propagation: 'Background' | 'Foreground' | 'Orphan' }
  /** It has another owner that stays: only the references to the others go. */
  | { readonly do: 'drop-owners'; readonly uids: readonly string[] };

/** For an object that is not being deleted: whether it may stay. */
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

/** For an object being deleted in the foreground: whether every dependent that holds it back is gone. */
export const isUnblocked = (node: Node, dependents: readonly Node[]): boolean =>
  !dependents.some(({ owners }) =>
    owners.some(({ uid, blockOwnerDeletion }) => uid === node.uid && blockOwnerDeletion === true),
  );
