// The next action for a claim, decided from its observed state. Pure; executed by claims.ts.
import type { PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeMode } from '#shared/api/foreign/core.ts';
import { formatQuantity } from '#shared/api/quantity.ts';
import { canCopy, isOurDriver } from '#local-cluster/controllers/volumes/classes.ts';
import {
  driverOf,
  grantedBytes,
  isBound,
  isWaitingForConsumer,
  requestedBytes,
  volumeModeOf,
} from '#local-cluster/controllers/volumes/facts.ts';
import type { Origin } from '#local-cluster/controllers/volumes/directory.ts';

export interface ClaimSeen {
  readonly claim: PersistentVolumeClaim;
  /** The class that the claim names, or the default one. */
  readonly storageClass: StorageClass | undefined;
  /** The volume that the claim names, or the one that refers to the claim. */
  readonly volume: PersistentVolume | undefined;
  readonly source: SourceSeen | undefined;
}

/** The data source of a claim. `what` names it in messages. */
export type SourceSeen =
  /** Filled by another component (a volume populator). */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'missing'; readonly what: string }
  | { readonly kind: 'deleting'; readonly what: string }
  | { readonly kind: 'unready'; readonly what: string }
  | {
      readonly kind: 'ready';
      readonly what: string;
      readonly from: Origin;
      readonly driver: string;
      readonly mode: VolumeMode;
      readonly bytes: number;
    };

export type ClaimStep =
  | { readonly do: 'nothing' }
  | { readonly do: 'set-class'; readonly className: string }
  | { readonly do: 'bind'; readonly volume: PersistentVolume }
  | { readonly do: 'mark-lost' }
  | { readonly do: 'expand'; readonly volume: PersistentVolume; readonly bytes: number }
  | { readonly do: 'provision'; readonly storageClass: StorageClass; readonly bytes: number; readonly from?: Origin }
  /** Nothing can be done before something else happens; `warn` when the user must correct it. */
  | { readonly do: 'wait'; readonly warn: boolean; readonly reason: string; readonly message: string };

const nothing: ClaimStep = { do: 'nothing' };
const refuse = (message: string): ClaimStep => ({ do: 'wait', warn: true, reason: 'ProvisioningFailed', message });
const waitFor = (message: string): ClaimStep => ({ do: 'wait', warn: false, reason: 'Provisioning', message });

export const planClaim = (seen: ClaimSeen): ClaimStep => {
  const { claim, volume } = seen;
  if (claim.metadata.deletionTimestamp !== undefined) return nothing;
  if (isBound(claim)) return planBound(seen);
  if (volume !== undefined) return { do: 'bind', volume };
  if (claim.spec.volumeName !== undefined && claim.spec.volumeName !== '') return nothing;
  return planPending(seen);
};

const planBound = ({ claim, volume, storageClass }: ClaimSeen): ClaimStep => {
  if (volume === undefined || volume.spec.claimRef?.uid !== claim.metadata.uid) return { do: 'mark-lost' };
  const bytes = requestedBytes(claim) ?? 0;
  const mayGrow = isOurDriver(driverOf(volume)) && storageClass?.allowVolumeExpansion === true;
  return mayGrow && bytes > grantedBytes(claim) ? { do: 'expand', volume, bytes } : nothing;
};

const planPending = ({ claim, storageClass, source }: ClaimSeen): ClaimStep => {
  if (storageClass === undefined) return planWithoutClass(claim);
  if (claim.spec.storageClassName === undefined) return { do: 'set-class', className: storageClass.metadata.name };
  if (!isOurDriver(storageClass.provisioner) || source?.kind === 'foreign') return nothing;
  const bytes = requestedBytes(claim);
  if (bytes === undefined) return refuse('spec.resources.requests.storage is not a size');
  if (isWaitingForConsumer(claim, storageClass)) {
    const message = 'waiting for first consumer to be created before binding';
    return { do: 'wait', warn: false, reason: 'WaitForFirstConsumer', message };
  }
  if (source === undefined) return { do: 'provision', storageClass, bytes };
  return planCopy(source, claim, { storageClass, bytes });
};

const planWithoutClass = ({ spec }: PersistentVolumeClaim): ClaimStep => {
  if (spec.storageClassName === undefined || spec.storageClassName === '') {
    const message = 'no persistent volumes available for this claim and no storage class is set';
    return { do: 'wait', warn: false, reason: 'FailedBinding', message };
  }
  return refuse(`storageclass "${spec.storageClassName}" not found`);
};

const planCopy = (
  source: Exclude<SourceSeen, { kind: 'foreign' }>,
  claim: PersistentVolumeClaim,
  { storageClass, bytes }: { readonly storageClass: StorageClass; readonly bytes: number },
): ClaimStep => {
  const { what } = source;
  const className = storageClass.metadata.name;
  if (!canCopy(storageClass.provisioner)) return refuse(`storage class "${className}" can neither clone nor restore`);
  if (source.kind === 'missing') return refuse(`${what} not found in namespace "${claim.metadata.namespace ?? ''}"`);
  if (source.kind === 'deleting') return refuse(`${what} is being deleted`);
  if (source.kind === 'unready') return waitFor(`${what} is not ready yet`);
  if (source.driver !== storageClass.provisioner) {
    return refuse(`${what} belongs to driver "${source.driver}", not to "${storageClass.provisioner}"`);
  }
  if (source.mode !== volumeModeOf(claim.spec)) {
    return refuse(`${what} is of mode ${source.mode} and cannot become a ${volumeModeOf(claim.spec)} volume`);
  }
  if (bytes >= source.bytes) return { do: 'provision', storageClass, bytes, from: source.from };
  const advice = `ask for at least ${formatQuantity(source.bytes)}`;
  return refuse(`requested size ${bytes} is less than the size ${source.bytes} of ${what}: ${advice}`);
};
