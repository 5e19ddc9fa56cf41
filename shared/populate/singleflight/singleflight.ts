// Singleflight: of the volumes in one namespace that request the same bytes in the same storage class, one fetches them, and the others are
// cloned from it. The fetcher holds a Lease whose name follows from the content: the API server lets one volume create it; the others get a
// conflict and reconcile again, and those that wait record it on the Lease. Every golden volume and snapshot with the content is labelled with
// it, so the bytes are not fetched again while one of them exists, whichever is deleted. Only golden ones count: any other volume is the disk
// of a machine that writes to it, so a clone would be a copy of that machine's disk instead of the image; a copy of such a disk is retained
// before its machine may start (volume/retained-copy.ts). A volume that fetches bytes although others had them records why. Pure.
import { type Lease, leases } from '#shared/api/foreign/kubernetes.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject, ObjectRef, OwnerReference, ResourceType } from '#shared/api/object.ts';
import { type Action, create, patch } from '#shared/populate/actions.ts';
import { type Origin, type ReadyOrigin, waitFor } from '#shared/populate/clone/origin.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';

export interface ObservedSingleflight {
  /** Derived from content and class. */
  readonly name: string;
  readonly lease: Lease | undefined;
  /** The holder of the lease, if it is another object and still exists. */
  readonly fetcher?: KubeObject | undefined;
  /**
   * Golden volumes and snapshots that hold the content. Only those that can be cloned now count: a pod may write to a volume forever, while
   * fetching is sure to end.
   */
  readonly kept: readonly ReadyOrigin[];
  /** Complete volumes of other classes with the content: to copy one is better than to fetch. Read only if the volume would fetch. */
  readonly ofOtherClasses?: readonly ReadyOrigin[] | undefined;
}

export type Singleflight =
  /**
   * Fetch: `actions` come before anything else is created. `because`: the reason, although others have or had the bytes. Default: no other
   * volume had them.
   */
  | { readonly is: 'leading'; readonly actions: readonly Action[]; readonly because?: string | undefined }
  /** This volume is already fetching; `because` as above. */
  | { readonly is: 'under way'; readonly because?: string | undefined }
  /** Clone, or wait for a volume to clone; `actions` record on the Lease that a volume waits. */
  | { readonly is: 'following'; readonly origin: Origin; readonly actions: readonly Action[] };

/** Why an existing volume cannot be cloned into the one that requests the same; `undefined`: it can. */
export type Unfit = (origin: ReadyOrigin) => string | undefined;

const leaseOf = (ref: ObjectRef, name: string, because: string | undefined): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    name,
    namespace: ref.namespace ?? 'default',
    annotations: {
      [annotations.ownerName]: ref.name,
      ...(because === undefined ? {} : { [annotations.fetchReason]: because }),
    },
    // Garbage-collected with its holder; then a waiting volume takes over.
    ownerReferences: [holderOf(ref)],
  },
  spec: { holderIdentity: ref.uid },
});

/** Only the observed version of the lease is taken over, so that one of several volumes succeeds. No volume waits for the new holder yet. */
const takeOver = (ref: ObjectRef, lease: Lease, because: string | undefined): readonly Action[] => [
  patch(leases, lease, {
    metadata: {
      annotations: {
        [annotations.ownerName]: ref.name,
        [annotations.awaited]: null,
        [annotations.fetchReason]: because ?? null,
      },
      ownerReferences: [holderOf(ref)],
    },
    spec: { holderIdentity: ref.uid },
  }),
];

/** Whether a volume waits for the holder of the lease. */
export const isAwaited = (lease: Lease | undefined, holder: Pick<ObjectRef, 'uid'>): boolean =>
  lease?.spec.holderIdentity === holder.uid && lease.metadata.annotations?.[annotations.awaited] === 'true';

const markAwaited = (lease: Lease): readonly Action[] =>
  lease.metadata.annotations?.[annotations.awaited] === 'true'
    ? []
    : [patch(leases, lease, { metadata: { annotations: { [annotations.awaited]: 'true' } } })];

/** Phases of kinds whose bytes are complete. */
const completed: readonly string[] = ['Succeeded', 'Available', 'Imported'];

const phaseOf = (object: KubeObject): string =>
  (object as { readonly status?: { readonly phase?: string } }).status?.phase ?? '';

/** It will never have the bytes, or lost them: otherwise it would be among the kept ones. */
export const isOut = (fetcher: KubeObject | undefined): boolean => {
  if (fetcher === undefined || fetcher.metadata.deletionTimestamp !== undefined) return true;
  const phase = phaseOf(fetcher);
  return phase === 'Failed' || completed.includes(phase);
};

/** Why the bytes are fetched although others of the namespace have or had them. */
const whyAgain = ({ kept: [there], fetcher }: ObservedSingleflight, isUnfit: Unfit): string | undefined => {
  if (there !== undefined)
    return `${there.clone.what} has the same content, but cannot be copied here: ${isUnfit(there) ?? ''}`;
  if (fetcher === undefined || !completed.includes(phaseOf(fetcher))) return undefined;
  const what = `${fetcher.kind} ${fetcher.metadata.name} has fetched the same content before`;
  return `${what}, and there is no copy left to clone: no volume waited for it then, and its volume may have been written to since`;
};

export const decideSingleflight = (ref: ObjectRef, observed: ObservedSingleflight, isUnfit: Unfit): Singleflight => {
  const { name, lease, fetcher, kept, ofOtherClasses = [] } = observed;
  const first = [...kept, ...ofOtherClasses].find((origin) => isUnfit(origin) === undefined);
  if (first !== undefined) return { is: 'following', origin: first, actions: [] };
  const because = whyAgain(observed, isUnfit);
  if (lease === undefined) return { is: 'leading', actions: [create(leases, leaseOf(ref, name, because))], because };
  // A crash may have happened between taking the lease and recording the reason.
  if (lease.spec.holderIdentity === ref.uid)
    return { is: 'under way', because: lease.metadata.annotations?.[annotations.fetchReason] };
  if (isOut(fetcher)) return { is: 'leading', actions: takeOver(ref, lease, because), because };
  const what = `${fetcher?.kind ?? ''} ${fetcher?.metadata.name ?? ''} fetches the same image`;
  const origin = waitFor('SameContent', `${what}: this volume is cloned from it once it is there`);
  return { is: 'following', origin, actions: markAwaited(lease) };
};

// Reference counting of the retained copy of a fetched disk (volume/retained-copy.ts): all volumes cloned from it own it, and it is
// deleted with the last of them. Pure; called by plans of clones.

/** One of several owners: none is the controller. */
export const holderOf = ({ apiVersion, kind, name, uid }: ObjectRef): OwnerReference => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: false,
  blockOwnerDeletion: false,
});

/** Retained copies have the name of their content; other volumes and snapshots are kept by their own owners. */
const isRetained = ({ metadata }: KubeObject): boolean => metadata.labels?.[labels.content] === metadata.name;

export const holdKept = (ref: ObjectRef, { restored, claim }: ReadyOrigin): readonly Action[] => {
  if (restored !== undefined && isRetained(restored)) return hold(volumeSnapshots, restored, ref);
  return claim !== undefined && isRetained(claim) ? hold(persistentVolumeClaims, claim, ref) : [];
};

const hold = <T extends KubeObject>(type: ResourceType<T>, kept: T, ref: ObjectRef): readonly Action[] => {
  const { ownerReferences = [] } = kept.metadata;
  if (ownerReferences.some(({ uid }) => uid === ref.uid)) return [];
  return [patch(type, kept, { metadata: { ownerReferences: [...ownerReferences, holderOf(ref)] } })];
};
