// A volume as the engine sees it, whichever kind the user wrote: one claim, filled from another object or from a source of bytes.
import type { AccessMode, PersistentVolumeClaim, VolumeMode } from '#shared/api/foreign/core.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { Grant } from '#shared/access/grant.ts';
import type { Filled } from '#shared/populate/filled.ts';
import type { Checksum } from '#shared/transfer/spec.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { JobSource } from '#shared/populate/source.ts';
import type { PodWishes } from '#shared/populate/job/pod-place.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { labels } from '#shared/api/names.ts';
import { contentOf, fileContent } from '#shared/populate/singleflight/content.ts';
import type { ObservedSingleflight } from '#shared/populate/singleflight/singleflight.ts';

export interface Volume extends Filled {
  /** `undefined` only where `faults` says why. */
  readonly source: VolumeSource | undefined;
  readonly checksum?: Checksum | undefined;
  /** Files of an archive in place of a disk. */
  readonly holdsFiles?: boolean;
  /** What it is said to hold, where neither source nor checksum tells. */
  readonly content?: string | undefined;
  readonly claim: ClaimRequest;
  /** What of other namespaces its author may have. Default: nothing. */
  readonly grants?: readonly Grant[] | undefined;
  /** Kind of the object, where it is itself to have the labels that tell how to run what is in the volume. */
  readonly labelled?: ResourceType | undefined;
  /** Of an upload: what the client is about to send. */
  readonly offered?: Inspection | undefined;
  /** To be taken of it once it is filled. Default: none. */
  readonly snapshot?: SnapshotRequest | undefined;
  /** How its Jobs' pods are to be run. */
  readonly pod?: PodWishes | undefined;
  /** Nothing is put into a volume of a WaitForFirstConsumer class before somebody uses it, who decides where it lies. */
  readonly waitsForConsumer: boolean;
  /** Its user wants it bound and filled, whatever its class waits for. */
  readonly isBoundAtOnce?: boolean;
}

export interface SnapshotRequest {
  readonly name: string;
  /** Default: the class of the volume's driver, if there is one. */
  readonly className?: string | undefined;
}

/** Where the bytes come from. */
export type VolumeSource =
  | {
      /** Objects of a cluster: a golden image by `<kind>.<group>`, a claim, or a snapshot. */
      readonly type: 'object';
      readonly groupKind: string;
      readonly namespace: string;
      readonly name: string;
      /** It stands for something else, which may lie in any namespace. */
      readonly mayLeadOn?: true;
    }
  | { readonly type: 'transfer'; readonly from: Exclude<JobSource, { readonly type: 'claim' }> };

/** Where a Job gets them, for what no object of the cluster holds. */
export const bytesOf = ({ source }: Pick<Volume, 'source'>): JobSource | undefined =>
  source?.type === 'transfer' ? source.from : undefined;

/** What is left out is taken from the source, then from the storage class. */
export interface ClaimRequest {
  readonly name: string;
  /**
   * `volume`: golden, and protected. Its modes are those that its class prefers, so that disks of the class begin as snapshots of it, and its disk keeps
   * the size of its source. Default: `disk`, somebody's own.
   */
  readonly role?: 'volume' | undefined;
  readonly className?: string | undefined;
  /** Whether the class that is marked as the default for disks counts where none is named; left out: it does. */
  readonly isForDisk?: boolean;
  readonly volumeMode?: VolumeMode | undefined;
  readonly accessModes?: readonly AccessMode[] | undefined;
  /** Bytes of the claim… */
  readonly bytes?: number | undefined;
  /** …or of the guest's disk: a file system gets room for itself beside it. */
  readonly diskBytes?: number | undefined;
  /** What is left out of modes and size is completed from the class's StorageProfile. */
  readonly isProfiled?: boolean;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Labels beside, of one that holds a file system. */
  readonly fileSystemLabels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Annotations that clients look for while somebody listens for an upload. */
  readonly listening?: Readonly<Record<string, string>> | undefined;
  /** Annotations that clients look for once it is filled. */
  readonly filled?: Readonly<Record<string, string>> | undefined;
  /** A disk in a file system takes all of its room at once, and these annotations of the claim say so then. */
  readonly preallocated?: Readonly<Record<string, string>> | undefined;
  /** Somebody brings the claim with its data: none is made here. */
  readonly comesFilled?: boolean;
  /** A persistent volume with its data may be promised to it: then the claim takes that, and nothing is written. */
  readonly mayBeStatic?: boolean;
  /** Whether a claim of that name, which somebody else made and filled, may be taken over as it is. */
  readonly adopts?: (claim: PersistentVolumeClaim) => boolean;
  /** Of a volume that fills what somebody else made empty: whether it is that claim. Such a claim is neither made nor removed here. */
  readonly fills?: ((claim: PersistentVolumeClaim) => boolean) | undefined;
}

// What a volume is to hold, as far as that is known beforehand, and whether others may be cloned from it (../singleflight).

/** Of an archive there is a disk with the same digest, too: it is not shared. */
export const contentOfVolume = ({ source, checksum, content, holdsFiles }: Volume): string | undefined =>
  holdsFiles === true ? undefined : knownContent({ source, checksum, content });

const knownContent = ({ source, checksum, content }: Pick<Volume, 'source' | 'checksum' | 'content'>) =>
  contentOf({ from: source?.type === 'transfer' ? source.from : undefined, checksum }) ??
  (content && fileContent(content));

export const isVersion = ({ claim: { labels: found = {} } }: Volume): boolean => found[cdiLabels.cron] !== undefined;

/** A version of a cron, or the golden volume of an image: no machine mounts it. */
export const isGolden = (volume: Volume): boolean => {
  const { role, labels: found = {} } = volume.claim;
  return isVersion(volume) || role === 'volume' || found[labels.role] === 'volume';
};

/** Label of its claim by which others find the content. */
export const contentMark = (
  volume: Volume,
  { singleflight }: { readonly singleflight?: ObservedSingleflight | undefined },
): string | undefined => (singleflight !== undefined && isGolden(volume) ? singleflight.name : undefined);
