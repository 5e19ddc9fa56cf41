// Singleflight: of the volumes in one namespace that would hold the same bytes in the same storage class, one fetches them, and the others
// are cloned from it. Who fetches holds a lease of a name fixed by the content: the API server lets one create it, whoever else tries
// learns of a conflict and looks again, and who waits says so on it. Every golden volume and snapshot that holds the content is labelled with it, so
// that the bytes are never fetched again while one of them is left, whoever of them goes. Only golden ones count: any other is the disk of a machine,
// which writes to it, and who is cloned from it would have that machine's disk in place of the image; of such a one something is kept before the
// machine may begin (resources/volume/retained-copy.ts). Whoever fetches what others had already says why. Pure.
import { type Lease, leases } from '#shared/api/foreign/coordination.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject, ObjectRef, OwnerReference, ResourceType } from '#shared/api/object.ts';
import { type Action, create, patch } from '#shared/populate/actions.ts';
import { type Origin, type ReadyOrigin, waitFor } from '#shared/populate/clone/origin.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';

export interface ObservedSingleflight {
  /** Fixed by content and class. */
  readonly name: string;
  readonly lease: Lease | undefined;
  /** Who holds the lease, where that is somebody else and still there. */
  readonly fetcher?: KubeObject | undefined;
  /** Golden volumes and snapshots that hold the content; to decide, those that can be cloned now: a pod may write to one for ever, and fetching is sure to end. */
  readonly kept: readonly ReadyOrigin[];
}

export type Singleflight =
  /** Fetch: `actions` come before anything else is made. `because`: why so, although others have or had the same; left out: nobody else had. */
  | { readonly is: 'leading'; readonly actions: readonly Action[]; readonly because?: string | undefined }
  /** It fetches already; `because` as above. */
  | { readonly is: 'under way'; readonly because?: string | undefined }
  /** Clone, or wait until there is something to clone; `actions` tell who fetches that somebody waits. */
  | { readonly is: 'following'; readonly origin: Origin; readonly actions: readonly Action[] };

/** Why one that is there cannot be cloned into the volume that wants the same; `undefined`: it can. */
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
    // Goes with its holder, and whoever waits takes over.
    ownerReferences: ownersOf(ref),
  },
  spec: { holderIdentity: ref.uid },
});

const ownersOf = ({ apiVersion, kind, name, uid }: ObjectRef) => [
  { apiVersion, kind, name, uid, controller: false, blockOwnerDeletion: false },
];

/** Only the lease as it was observed is taken over, so that of several who try one succeeds. Nobody waits for the new holder yet. */
const takeOver = (ref: ObjectRef, lease: Lease, because: string | undefined): readonly Action[] => [
  patch(leases, lease, {
    metadata: {
      annotations: {
        [annotations.ownerName]: ref.name,
        [annotations.awaited]: null,
        [annotations.fetchReason]: because ?? null,
      },
      ownerReferences: ownersOf(ref),
    },
    spec: { holderIdentity: ref.uid },
  }),
];

/** Whether somebody waits for what the holder of the lease fetches. */
export const isAwaited = (lease: Lease | undefined, holder: Pick<ObjectRef, 'uid'>): boolean =>
  lease?.spec.holderIdentity === holder.uid && lease.metadata.annotations?.[annotations.awaited] === 'true';

const markAwaited = (lease: Lease): readonly Action[] =>
  lease.metadata.annotations?.[annotations.awaited] === 'true'
    ? []
    : [patch(leases, lease, { metadata: { annotations: { [annotations.awaited]: 'true' } } })];

/** What kinds say whose bytes are complete. */
const completed: readonly string[] = ['Succeeded', 'Available', 'Imported'];

const phaseOf = (object: KubeObject): string =>
  (object as { readonly status?: { readonly phase?: string } }).status?.phase ?? '';

/** It will never have the bytes, or had them and lost them: what it holds would be among what is kept. */
const isOut = (fetcher: KubeObject | undefined): boolean => {
  if (fetcher === undefined || fetcher.metadata.deletionTimestamp !== undefined) return true;
  const phase = phaseOf(fetcher);
  return phase === 'Failed' || completed.includes(phase);
};

/** Why the bytes are to be fetched, although others of the namespace have or had them. */
const whyAgain = ({ kept: [there], fetcher }: ObservedSingleflight, isUnfit: Unfit): string | undefined => {
  if (there !== undefined)
    return `${there.clone.what} holds the same, and cannot be copied here: ${isUnfit(there) ?? ''}`;
  if (fetcher === undefined || !completed.includes(phaseOf(fetcher))) return undefined;
  const what = `${fetcher.kind} ${fetcher.metadata.name} has had the same fetched before`;
  return `${what}, and nothing is kept of it that could be copied: nobody waited for it then, and its volume may have been written to since`;
};

export const decideSingleflight = (ref: ObjectRef, observed: ObservedSingleflight, isUnfit: Unfit): Singleflight => {
  const { name, lease, fetcher, kept } = observed;
  const first = kept.find((origin) => isUnfit(origin) === undefined);
  if (first !== undefined) return { is: 'following', origin: first, actions: [] };
  const because = whyAgain(observed, isUnfit);
  if (lease === undefined) return { is: 'leading', actions: [create(leases, leaseOf(ref, name, because))], because };
  // A crash may have come between taking the lease and recording why.
  if (lease.spec.holderIdentity === ref.uid)
    return { is: 'under way', because: lease.metadata.annotations?.[annotations.fetchReason] };
  if (isOut(fetcher)) return { is: 'leading', actions: takeOver(ref, lease, because), because };
  const what = `${fetcher?.kind ?? ''} ${fetcher?.metadata.name ?? ''} fetches the same image`;
  const origin = waitFor('SameContent', `${what}: this volume is cloned from it once it is there`);
  return { is: 'following', origin, actions: markAwaited(lease) };
};

// Reference counting of what is kept for others of a fetched disk (resources/volume/retained-copy.ts): it is owned by all who have their bytes from it, and goes
// with the last of them. Pure; called by whoever is cloned from it.

/** One owner of several: none of them controls it. */
export const holderOf = ({ apiVersion, kind, name, uid }: ObjectRef): OwnerReference => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: false,
  blockOwnerDeletion: false,
});

/** `name`: that of the content; everything else is held by those it belongs to. */
export const holdKept = (ref: ObjectRef, name: string, { restored, claim }: ReadyOrigin): readonly Action[] => {
  if (restored?.metadata.name === name) return hold(volumeSnapshots, restored, ref);
  return claim?.metadata.name === name ? hold(persistentVolumeClaims, claim, ref) : [];
};

const hold = <T extends KubeObject>(type: ResourceType<T>, kept: T, ref: ObjectRef): readonly Action[] => {
  const { ownerReferences = [] } = kept.metadata;
  if (ownerReferences.some(({ uid }) => uid === ref.uid)) return [];
  return [patch(type, kept, { metadata: { ownerReferences: [...ownerReferences, holderOf(ref)] } })];
};
