// The internal model of a volume, for every kind that the user may create: one claim, filled from another object or from a source of bytes.
import type { AccessMode, PersistentVolumeClaim, VolumeMode } from '#shared/api/foreign/core.ts';
import type { Owner, ResourceType } from '#shared/api/object.ts';
import type { Grant } from '#shared/access/permissions.ts';
import type { Filled } from '#shared/populate/filled.ts';
import type { Checksum } from '#shared/transfer/spec.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { JobSource } from '#shared/populate/source.ts';
import type { PodWishes } from '#shared/populate/job/pod-place.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { labels } from '#shared/api/names.ts';
import { contentOf, fileContent } from '#shared/populate/singleflight/read.ts';
import type { ObservedSingleflight } from '#shared/populate/singleflight/singleflight.ts';

export interface Volume extends Filled {
  /** `undefined` only if `faults` explains why. */
  readonly source: VolumeSource | undefined;
  readonly checksum?: Checksum | undefined;
  /** Files of an archive instead of a disk. */
  readonly holdsFiles?: boolean;
  /** Its declared content, if neither source nor checksum identify it. */
  readonly content?: string | undefined;
  readonly claim: ClaimRequest;
  /** What its author may use in other namespaces. Default: nothing. */
  readonly grants?: readonly Grant[] | undefined;
  /** Kind of the object, if the object itself gets the labels that describe how to run the guest in the volume. */
  readonly labelled?: ResourceType | undefined;
  /** For an upload: the announced file. */
  readonly offered?: Inspection | undefined;
  /** Requested snapshot of the filled volume. Default: none. */
  readonly snapshot?: SnapshotRequest | undefined;
  /** Requests for the pods of its Jobs. */
  readonly pod?: PodWishes | undefined;
  /** A volume of a WaitForFirstConsumer class is not filled before its first consumer, who decides where it is. */
  readonly waitsForConsumer: boolean;
  /** It is a golden copy; `wakes`: objects with these sources may wait for it. */
  readonly isCopy?: { readonly wakes: readonly Omit<Owner, 'uid'>[] } | undefined;
  /** Its user requests that it is bound and filled at once, whatever its class waits for. */
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
      /** It refers to another object, which may be in any namespace. */
      readonly mayLeadOn?: true;
    }
  | { readonly type: 'transfer'; readonly from: Exclude<JobSource, { readonly type: 'claim' }> };

/** The source for a Job, for content that no object of the cluster holds. */
export const bytesOf = ({ source }: Pick<Volume, 'source'>): JobSource | undefined =>
  source?.type === 'transfer' ? source.from : undefined;

/** Missing fields are taken from the source, then from the storage class. */
export interface ClaimRequest {
  readonly name: string;
  /**
   * `volume`: golden, and protected. It uses the preferred modes of its class, so that disks of the class can be snapshots of it, and its disk
   * keeps the size of its source. Default: `disk`, the disk of a user.
   */
  readonly role?: 'volume' | undefined;
  readonly className?: string | undefined;
  /** Whether the default class for disks applies if no class is named. Default: true. */
  readonly isForDisk?: boolean;
  readonly volumeMode?: VolumeMode | undefined;
  readonly accessModes?: readonly AccessMode[] | undefined;
  /** Bytes of the claim… */
  readonly bytes?: number | undefined;
  /** …or of the guest's disk: a file system gets additional space for itself. */
  readonly diskBytes?: number | undefined;
  /** Missing modes and size are completed from the StorageProfile of the class. */
  readonly isProfiled?: boolean;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Additional labels for a claim with a file system. */
  readonly fileSystemLabels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Annotations that clients look for while a pod waits for an upload. */
  readonly listening?: Readonly<Record<string, string>> | undefined;
  /** Annotations that clients look for once it is filled. */
  readonly filled?: Readonly<Record<string, string>> | undefined;
  /** A disk in a file system is preallocated, and these annotations of the claim are set then. */
  readonly preallocated?: Readonly<Record<string, string>> | undefined;
  /** Another client creates the claim with its data: none is created here. */
  readonly comesFilled?: boolean;
  /** A persistent volume with data may be reserved for it: then the claim is bound to it, and nothing is written. */
  readonly mayBeStatic?: boolean;
  /** Whether a claim with that name, which another client created and filled, may be adopted. */
  readonly adopts?: (claim: PersistentVolumeClaim) => boolean;
  /** For a volume that fills a claim another client created empty: whether it is that claim. Such a claim is neither created nor removed here. */
  readonly fills?: ((claim: PersistentVolumeClaim) => boolean) | undefined;
}

// The content of a volume, if known in advance, and whether others may be cloned from it (../singleflight).

/** The digest of an archive would also match its disk, so an archive is not shared. */
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

/** Label of its claim by which other volumes find the content. */
export const contentMark = (
  volume: Volume,
  { singleflight }: { readonly singleflight?: ObservedSingleflight | undefined },
): string | undefined => (singleflight !== undefined && isGolden(volume) ? singleflight.name : undefined);
