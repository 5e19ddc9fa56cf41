// What a claim needs next, decided from what was seen of it. Pure; carried out by claims.ts.
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#shared/api/foreign/snapshot.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { canCopy, isOurDriver } from '#infra/local/controllers/volumes/classes.ts';
import {
  capacityOf,
  driverOf,
  grantedBytes,
  handleOf,
  isBound,
  isWaitingForConsumer,
  requestedBytes,
  volumeModeOf,
} from '#infra/local/controllers/volumes/facts.ts';
import type { Origin } from '#infra/local/controllers/volumes/directory.ts';

export interface ClaimSeen {
  readonly claim: PersistentVolumeClaim;
  /** The class the claim names, or the default one when it names none. */
  readonly storageClass: StorageClass | undefined;
  /** The volume the claim names, or the one that names the claim. */
  readonly volume: PersistentVolume | undefined;
  readonly source: SourceSeen | undefined;
}

export type SourceSeen =
  | {
      readonly kind: 'snapshot';
      readonly snapshot?: VolumeSnapshot | undefined;
      readonly content?: VolumeSnapshotContent | undefined;
    }
  | {
      readonly kind: 'claim';
      readonly claim?: PersistentVolumeClaim | undefined;
      readonly volume?: PersistentVolume | undefined;
    }
  /** Filled by somebody else (a volume populator). */
  | { readonly kind: 'foreign' };

export type ClaimStep =
  | { readonly do: 'nothing' }
  | { readonly do: 'set-class'; readonly className: string }
  | { readonly do: 'bind'; readonly volume: PersistentVolume }
  | { readonly do: 'mark-lost' }
  | { readonly do: 'expand'; readonly volume: PersistentVolume; readonly bytes: number }
  | { readonly do: 'provision'; readonly storageClass: StorageClass; readonly bytes: number; readonly from?: Origin }
  /** Nothing can be done before something else happens; `warn` when that is the user's to mend. */
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
  const origin = originOf(source, claim, storageClass);
  return 'do' in origin ? origin : sized(origin, bytes, storageClass);
};

const planWithoutClass = ({ spec }: PersistentVolumeClaim): ClaimStep => {
  if (spec.storageClassName === undefined || spec.storageClassName === '') {
    const message = 'no persistent volumes available for this claim and no storage class is set';
    return { do: 'wait', warn: false, reason: 'FailedBinding', message };
  }
  return refuse(`storageclass "${spec.storageClassName}" not found`);
};

interface SizedOrigin {
  readonly from: Origin;
  readonly bytes: number;
  readonly what: string;
}

const sized = (origin: SizedOrigin, bytes: number, storageClass: StorageClass): ClaimStep => {
  if (bytes >= origin.bytes) return { do: 'provision', storageClass, bytes, from: origin.from };
  return refuse(
    `requested volume size ${bytes} is less than the size ${origin.bytes} of ${origin.what}: ask for at least ${formatBytes(origin.bytes)}`,
  );
};

const originOf = (
  source: Exclude<SourceSeen, { kind: 'foreign' }>,
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
): SizedOrigin | ClaimStep => {
  if (!canCopy(storageClass.provisioner)) {
    return refuse(`storage class "${storageClass.metadata.name}" can neither clone volumes nor restore snapshots`);
  }
  return source.kind === 'snapshot'
    ? originOfSnapshot(source, claim, storageClass)
    : originOfClaim(source, claim, storageClass);
};

const originOfSnapshot = (
  { snapshot, content }: Extract<SourceSeen, { kind: 'snapshot' }>,
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
): SizedOrigin | ClaimStep => {
  const what = `snapshot "${claim.spec.dataSourceRef?.name ?? claim.spec.dataSource?.name ?? ''}"`;
  if (snapshot === undefined) return refuse(`${what} not found in namespace "${claim.metadata.namespace ?? ''}"`);
  if (snapshot.metadata.deletionTimestamp !== undefined) return refuse(`${what} is being deleted`);
  const handle = content?.status?.snapshotHandle;
  if (snapshot.status?.readyToUse !== true || content === undefined || handle === undefined) {
    return waitFor(`${what} is not ready to use yet`);
  }
  if (content.spec.driver !== storageClass.provisioner) {
    return refuse(`${what} was made by driver ${content.spec.driver}, not by ${storageClass.provisioner}`);
  }
  if (volumeModeOf({ volumeMode: content.spec.sourceVolumeMode }) !== volumeModeOf(claim.spec)) {
    return refuse(
      `${what} is of a ${content.spec.sourceVolumeMode} volume and cannot become a ${volumeModeOf(claim.spec)} one`,
    );
  }
  return { from: { what: 'snapshot', handle }, bytes: content.status?.restoreSize ?? 0, what };
};

const originOfClaim = (
  { claim: origin, volume }: Extract<SourceSeen, { kind: 'claim' }>,
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
): SizedOrigin | ClaimStep => {
  const what = `claim "${claim.spec.dataSourceRef?.name ?? claim.spec.dataSource?.name ?? ''}"`;
  if (origin === undefined) return refuse(`${what} not found in namespace "${claim.metadata.namespace ?? ''}"`);
  if (origin.metadata.deletionTimestamp !== undefined) return refuse(`${what} is being deleted`);
  if (!isBound(origin) || volume === undefined) return waitFor(`${what} is not bound yet`);
  if (driverOf(volume) !== storageClass.provisioner) {
    return refuse(`${what} belongs to driver ${driverOf(volume) || 'unknown'}, not to ${storageClass.provisioner}`);
  }
  if (volumeModeOf(origin.spec) !== volumeModeOf(claim.spec)) {
    return refuse(
      `${what} is a ${volumeModeOf(origin.spec)} volume and cannot become a ${volumeModeOf(claim.spec)} one`,
    );
  }
  return { from: { what: 'volume', handle: handleOf(volume) }, bytes: capacityOf(volume), what };
};
