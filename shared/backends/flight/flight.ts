// Single flight: of the volumes in one namespace that would hold the same bytes in the same storage class, one fetches them, and the others
// are cloned from it. Who fetches holds a lease of a name fixed by the content: the API server lets one create it, whoever else tries
// learns of a conflict and looks again. Every golden volume and snapshot that holds the content is labelled with it, so that the bytes are never
// fetched again while one of them is left, whoever of them goes. Only golden ones count: any other is the disk of a machine, which writes to it,
// and who is cloned from it would have that machine's disk in place of the image; of such a one a snapshot is kept, where its class can. Pure.
import { type Lease, leases } from '#shared/api/foreign/coordination.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject, ObjectRef } from '#shared/api/object.ts';
import { type Action, create, patch } from '#shared/backends/actions.ts';
import { type Origin, type ReadyOrigin, waitFor } from '#shared/backends/origin.ts';

export interface FlightSeen {
  /** Fixed by content and class. */
  readonly name: string;
  readonly lease: Lease | undefined;
  /** Who holds the lease, where that is somebody else and still there. */
  readonly fetcher?: KubeObject | undefined;
  /** Golden volumes and snapshots that hold the content; to decide, those that can be cloned now: a pod may write to one for ever, and fetching is sure to end. */
  readonly kept: readonly ReadyOrigin[];
}

export interface Flyer {
  readonly ref: ObjectRef;
  /** Whether others can be cloned from what it fetches: a golden volume, or one that is kept as a snapshot before a machine writes to it. */
  readonly isShared: boolean;
}

export type Flight =
  /** Fetch: `actions` come before anything else is made. */
  | { readonly is: 'leading'; readonly actions: readonly Action[] }
  /** Clone, or wait until there is something to clone. */
  | { readonly is: 'following'; readonly origin: Origin }
  /** Fetch without telling anybody: what will be here may not be cloned. */
  | { readonly is: 'alone' };

const leaseOf = (ref: ObjectRef, name: string): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    name,
    namespace: ref.namespace ?? 'default',
    annotations: { [annotations.ownerName]: ref.name },
    // Goes with its holder, and whoever waits takes over.
    ownerReferences: ownersOf(ref),
  },
  spec: { holderIdentity: ref.uid },
});

const ownersOf = ({ apiVersion, kind, name, uid }: ObjectRef) => [
  { apiVersion, kind, name, uid, controller: false, blockOwnerDeletion: false },
];

/** Only the lease as it was seen is taken over, so that of several who try one succeeds. */
const takeOver = (ref: ObjectRef, lease: Lease): readonly Action[] => [
  patch(leases, lease, {
    metadata: { annotations: { [annotations.ownerName]: ref.name }, ownerReferences: ownersOf(ref) },
    spec: { holderIdentity: ref.uid },
  }),
];

/** What kinds say whose bytes are complete. */
const completed: readonly string[] = ['Succeeded', 'Available', 'Imported'];

/** It will never have the bytes, or had them and lost them: what it holds would be among what is kept. */
const isOut = (fetcher: KubeObject | undefined): boolean => {
  if (fetcher === undefined || fetcher.metadata.deletionTimestamp !== undefined) return true;
  const { phase = '' } = (fetcher as { readonly status?: { readonly phase?: string } }).status ?? {};
  return phase === 'Failed' || completed.includes(phase);
};

export const decideFlight = ({ ref, isShared }: Flyer, { name, lease, fetcher, kept }: FlightSeen): Flight => {
  const [first] = kept;
  if (first !== undefined) return { is: 'following', origin: first };
  const lead = (actions: () => readonly Action[]): Flight =>
    isShared ? { is: 'leading', actions: actions() } : { is: 'alone' };
  if (lease === undefined) return lead(() => [create(leases, leaseOf(ref, name))]);
  if (lease.spec.holderIdentity === ref.uid) return { is: 'leading', actions: [] };
  if (isOut(fetcher)) return lead(() => takeOver(ref, lease));
  const what = `${fetcher?.kind ?? ''} ${fetcher?.metadata.name ?? ''} fetches the same image`;
  return { is: 'following', origin: waitFor('SameContent', `${what}: this volume is cloned from it once it is there`) };
};
