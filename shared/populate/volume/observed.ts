// What is known of a volume when its next step is decided. Read by check.ts.
import type { MayUse } from '#shared/access/grant.ts';
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
import type { ObservedStage } from '#shared/populate/volume/elsewhere-observed.ts';
import type { RetainedCopy } from '#shared/populate/volume/retained-copy.ts';
import { type Volume, bytesOf } from '#shared/populate/volume/volume.ts';

export interface ObservedVolume {
  readonly claim?: PersistentVolumeClaim | undefined;
  /** A claim of our name that belongs to somebody else. */
  readonly foreign?: PersistentVolumeClaim | undefined;
  /** Anything else of our names that belongs to somebody else. It is never touched. */
  readonly taken?: KubeObject | undefined;
  readonly job?: Job | undefined;
  /** Keeps what was uploaded until it is a disk. */
  readonly spool?: PersistentVolumeClaim | undefined;
  /** Looks, where the source lies, at how large its disk is. */
  readonly inspectJob?: Job | undefined;
  /** What that found, where it was read from its pods alone. */
  readonly looked?: SucceededRun | undefined;
  readonly pods: readonly Pod[];
  /** Jobs that read the claim for others; looked for only where all is to be removed. */
  readonly readers?: readonly Job[];
  /** Taken of the source, to be restored. */
  readonly sourceSnapshot?: VolumeSnapshot | undefined;
  /** A claim that a snapshot was restored into for this one alone: the Job copies it. */
  readonly restored?: PersistentVolumeClaim | undefined;
  /** Class of the claim, or the one it is to be made with. */
  readonly storageClass?: StorageClass | undefined;
  /** It was not looked for: how large the disk is comes first. */
  readonly isClassUnread?: true;
  /** What is said of it; read only where the claim is completed from it, or cloned. */
  readonly profile?: StorageProfile | undefined;
  /** Read only where the claim is to be made; `undefined` for sources of bytes. */
  readonly origin?: Origin | undefined;
  /** Who else wants the same bytes; read only where the claim is to be made, and what goes in is known beforehand. */
  readonly singleflight?: ObservedSingleflight | undefined;
  /** Names of claims with these bytes that lie where the volume, whose place its consumer chose, cannot be copied from. */
  readonly outOfReach?: ReadonlySet<string> | undefined;
  /** What is to be kept of it for others that want the same bytes. */
  readonly retainedCopy?: RetainedCopy | undefined;
  readonly warnings?: readonly KubeEvent[] | undefined;
  /** One with its data that is promised to the claim; looked for only where the claim is to be made, and its user says so. */
  readonly promised?: PersistentVolume | undefined;
  /** Of a volume whose source lies in another namespace. */
  readonly stage?: ObservedStage | undefined;
  /** The persistent volume that was handed over to the claim, while that is not marked as filled. */
  readonly handed?: PersistentVolume | undefined;
  /** Of the volume once it is filled, where one is asked for. */
  readonly snapshot?: VolumeSnapshot | undefined;
  /** The snapshot, and all that was read: it is ready, and ends what status says is done but for it. */
  readonly completed?: VolumeSnapshot | undefined;
  /** Read only where a snapshot is to be made; `undefined`: not read. */
  readonly snapshotClasses?: readonly VolumeSnapshotClass[] | undefined;
  /** The class that is to make it, as the StorageProfile of the volume's class says. */
  readonly snapshotClass?: string | undefined;
}

/** How a source is found ready, by `<kind>.<group>`; those of claims and snapshots are known. */
export type OriginReaders = Readonly<Record<string, (kube: KubeClient, key: Key, mayUse: MayUse) => Promise<Origin>>>;
type Key = { readonly namespace: string; readonly name: string };

export const nothing: ObservedVolume = { pods: [] };

/** Whether a child may be there: on a first look, those that status knows of. */
export const mayBe = ({ trustsStatus }: Volume, known: string | undefined): boolean =>
  trustsStatus !== true || known !== undefined;

/** Nobody says how large the disk of a source of bytes is. */
export const isSizeOpen = ({ source, claim }: Volume): boolean =>
  source?.type === 'transfer' && claim.bytes === undefined && claim.diskBytes === undefined;

/** A Job looks at the source first. */
export const needsInspection = (volume: Volume): boolean => isSizeOpen(volume) && !isSent(bytesOf(volume));
