// Single flight: of the volumes in one namespace that would hold the same bytes in the same storage class, one fetches them, and the others
// are cloned from it. Who fetches holds a lease of a name fixed by the content: the API server lets one create it, whoever else tries
// learns of a conflict and looks again. Only a golden volume holds one: any other becomes the disk of a machine, which writes to it, and who
// is cloned from it then would have that machine's disk in place of the image. Others may still be cloned from a golden one. Pure.
import { type Lease, leases } from '#shared/api/foreign/coordination.ts';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { type Action, create, patch } from '#shared/backends/actions.ts';
import { type Origin, waitFor } from '#shared/resources/volume/origin.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

export interface FlightSeen {
  /** Fixed by content and class. */
  readonly leaseName: string;
  readonly lease: Lease | undefined;
  /** Who holds the lease, where that is somebody else and still there. */
  readonly holder?: DataVolume | undefined;
  /** The holder's volume as something to clone. */
  readonly origin?: Origin | undefined;
}

export type Flight =
  /** Fetch: `actions` come before anything else is made. */
  | { readonly is: 'leading'; readonly actions: readonly Action[] }
  /** Clone, or wait until there is something to clone. */
  | { readonly is: 'following'; readonly origin: Origin }
  /** Fetch without telling anybody: what is there cannot be cloned, or what will be here may not. */
  | { readonly is: 'alone' };

const leaseOf = ({ ref }: Volume, name: string): Lease => ({
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

const ownersOf = ({ apiVersion, kind, name, uid }: Volume['ref']) => [
  { apiVersion, kind, name, uid, controller: false, blockOwnerDeletion: false },
];

/** Only the lease as it was seen is taken over, so that of several who try one succeeds. */
const takeOver = ({ ref }: Volume, lease: Lease): readonly Action[] => [
  patch(leases, lease, {
    metadata: { annotations: { [annotations.ownerName]: ref.name }, ownerReferences: ownersOf(ref) },
    spec: { holderIdentity: ref.uid },
  }),
];

/** A holder that will never have the bytes, or has lost them. */
const isOut = (holder: DataVolume | undefined, origin: Origin | undefined): boolean => {
  if (holder === undefined || holder.metadata.deletionTimestamp !== undefined) return true;
  const { phase } = holder.status ?? {};
  return phase === 'Failed' || (phase === 'Succeeded' && origin?.is === 'waiting');
};

/** A version of a cron, or the golden volume of an image: no machine mounts it. */
const isGolden = ({ claim: { labels: found = {} } }: Volume): boolean =>
  found[cdiLabels.cron] !== undefined || found[labels.role] === 'volume';

export const decideFlight = (volume: Volume, { leaseName, lease, holder, origin }: FlightSeen): Flight => {
  const lead = (actions: () => readonly Action[]): Flight =>
    isGolden(volume) ? { is: 'leading', actions: actions() } : { is: 'alone' };
  if (lease === undefined) return lead(() => [create(leases, leaseOf(volume, leaseName))]);
  if (lease.spec.holderIdentity === volume.ref.uid) return { is: 'leading', actions: [] };
  if (isOut(holder, origin)) return lead(() => takeOver(volume, lease));
  if (origin?.is === 'ready') {
    // A machine may have it for ever; fetching is sure to end.
    const isTaken =
      origin.clone.inUseBy !== undefined && !origin.clone.hasSnapshot && origin.clone.snapshotClass === undefined;
    return isTaken ? { is: 'alone' } : { is: 'following', origin };
  }
  const what = `DataVolume ${holder?.metadata.name ?? ''} fetches the same image`;
  return { is: 'following', origin: waitFor('SameContent', `${what}: this volume is cloned from it once it is there`) };
};
