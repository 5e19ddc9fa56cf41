// The observed state of a volume when its next step is decided. Read by check.ts.
import type { AskMayUse } from '#shared/access/permissions.ts';
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import type {
  Job,
  KubeEvent,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
} from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot, VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Origin } from '#shared/populate/clone/origin.ts';
import type { SucceededRun } from '#shared/populate/job/attempts.ts';
import type { ObservedSingleflight } from '#shared/populate/singleflight/singleflight.ts';
import { isSent } from '#shared/populate/source.ts';
import type { ObservedCopy, ReadCopyRight } from '#shared/populate/volume/golden-copy.ts';
import type { ObservedStage } from '#shared/populate/volume/elsewhere-observed.ts';
import type { RetainedCopy } from '#shared/populate/volume/retained-copy.ts';
import { type Volume, bytesOf } from '#shared/populate/volume/volume.ts';

export interface ObservedVolume {
  readonly claim?: PersistentVolumeClaim | undefined;
  /** A claim with our name and another owner. */
  readonly foreign?: PersistentVolumeClaim | undefined;
  /** Any other object with one of our names and another owner. It is never changed. */
  readonly taken?: KubeObject | undefined;
  readonly job?: Job | undefined;
  /** Keeps an upload until it is a disk. */
  readonly spool?: PersistentVolumeClaim | undefined;
  /** Determines the size of the disk, in the namespace of the source. */
  readonly inspectJob?: Job | undefined;
  /** Its result, if it was read from the pods without the Job. */
  readonly looked?: SucceededRun | undefined;
  readonly pods: readonly Pod[];
  /** Jobs that read the claim for downloads or backups; read only if everything is to be removed. */
  readonly readers?: readonly Job[];
  /** Taken of the source, to be restored. */
  readonly sourceSnapshot?: VolumeSnapshot | undefined;
  /** A claim that a snapshot was restored into for this volume only: the Job copies it. */
  readonly restored?: PersistentVolumeClaim | undefined;
  /** Class of the claim, or the class it is to be created with. */
  readonly storageClass?: StorageClass | undefined;
  /** Whether its driver is one of CSI; read only if the claim is to be created in a class that waits for its first consumer. */
  readonly isDriverOfCsi?: boolean | undefined;
  /** It was not read: the size of the disk must be determined first. */
  readonly isClassUnread?: true;
  /** Its profile; read only if the claim is completed from it, or cloned. */
  readonly profile?: StorageProfile | undefined;
  /** Read only if the claim is to be created; `undefined` for sources of bytes. */
  readonly origin?: Origin | undefined;
  /** The copy of its source in its class; read only if the claim is to be created from a version of a golden image in another class. */
  readonly goldenCopy?: ObservedCopy | undefined;
  /** Other volumes with the same bytes; read only if the claim is to be created and its content is known in advance. */
  readonly singleflight?: ObservedSingleflight | undefined;
  /** Names of claims with these bytes that cannot be copied from in the place that the consumer of the volume chose. */
  readonly outOfReach?: ReadonlySet<string> | undefined;
  /** The copy to retain for other volumes with the same bytes. */
  readonly retainedCopy?: RetainedCopy | undefined;
  readonly warnings?: readonly KubeEvent[] | undefined;
  /** A persistent volume with data that is reserved for the claim; read only if the claim is to be created and its user allows it. */
  readonly promised?: PersistentVolume | undefined;
  /** For a volume whose source is in another namespace. */
  readonly stage?: ObservedStage | undefined;
  /** The persistent volume that was handed over to the claim, until that is marked as filled. */
  readonly handed?: PersistentVolume | undefined;
  /** The claim that is filled in place of the claim of the disk (prime.ts). */
  readonly prime?: PersistentVolumeClaim | undefined;
  /** Its persistent volume; read only once the disk is complete, until the volume is bound to the claim of the disk. */
  readonly primeVolume?: PersistentVolume | undefined;
  /** Snapshot of the filled volume, if one is requested. */
  readonly snapshot?: VolumeSnapshot | undefined;
  /** The snapshot, if nothing else was read: it is ready, and was the only thing missing according to status. */
  readonly completed?: VolumeSnapshot | undefined;
  /** Read only if a snapshot is to be taken; `undefined`: not read. */
  readonly snapshotClasses?: readonly VolumeSnapshotClass[] | undefined;
  /** Its class according to the StorageProfile of the volume's class. */
  readonly snapshotClass?: string | undefined;
}

/** Readers that determine whether a source is ready, by `<kind>.<group>`; those of claims and snapshots are built in. */
export type OriginReaders = Readonly<
  Record<string, (kube: KubeClient, key: Key, mayUse: AskMayUse) => Promise<Origin>>
>;
type Key = { readonly namespace: string; readonly name: string };

/** Readers of sources that the engine does not know. */
export interface SourceReaders {
  readonly origins?: OriginReaders;
  /** Default: there are no golden copies. */
  readonly copyRight?: ReadCopyRight;
}

export const nothing: ObservedVolume = { pods: [] };

/** Whether a child may exist: in a first pass, only those that status lists. */
export const mayBe = ({ trustsStatus }: Volume, known: string | undefined): boolean =>
  trustsStatus !== true || known !== undefined;

/** The size of the disk of a source of bytes is unknown. */
export const isSizeOpen = ({ source, claim }: Volume): boolean =>
  source?.type === 'transfer' && claim.bytes === undefined && claim.diskBytes === undefined;

/** A Job inspects the source first. */
export const needsInspection = (volume: Volume): boolean => isSizeOpen(volume) && !isSent(bytesOf(volume));
