// Selects the clone strategy: a function of the storage if possible, else a byte-by-byte copy. Pure; called by plans of volumes.
import type { StorageClass, VolumeMode, PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { diskBytesIn, Population } from '#shared/populate/population.ts';
import { z } from 'zod';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { annotations } from '#shared/api/names.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

/**
 * `snapshot`: the new claim restores a snapshot. `csi-clone`: the new claim names the old one as its source. `copy`: a Job reads one and
 * writes the other.
 */
export const cloneStrategies = ['snapshot', 'csi-clone', 'copy'] as const;
export type CloneStrategy = (typeof cloneStrategies)[number];

export interface CloneSource {
  /** For messages: `image ubuntu`. */
  readonly what: string;
  /** Default: unknown; then only a byte-by-byte copy is possible. */
  readonly driver: string | undefined;
  readonly volumeMode: VolumeMode;
  /** Bytes of the volume. */
  readonly bytes: number;
  /** Bytes of the guest's disk in it; the size of the volume if unknown. */
  readonly diskBytes: number;
  /** It holds the files of an archive, not a disk. */
  readonly holdsFiles?: boolean | undefined;
  /** Whether a ready snapshot of it exists. */
  readonly hasSnapshot: boolean;
  /** Class for a new snapshot, if there is none yet and the driver supports snapshots. */
  readonly snapshotClass?: string | undefined;
  /** A disk in a file system that its machine may have enlarged: `diskBytes` is the maximum, and only an inspection reveals the actual size. */
  readonly mayHaveGrown?: boolean | undefined;
  /** Whether its claim exists: a snapshot can outlive it. */
  readonly hasClaim: boolean;
  /** Class to restore a snapshot in, for a Job to copy from, if the claim is gone or in use. Default: the driver has no class. */
  readonly restoreClass?: string | undefined;
  /** A running pod that may write to it. */
  readonly inUseBy?: string | undefined;
}

export interface CloneTarget {
  readonly storageClass: StorageClass;
  readonly volumeMode: VolumeMode;
  /** Whether files are requested rather than a disk. Default: the content of the source. */
  readonly holdsFiles?: boolean | undefined;
  /** Bytes requested. */
  readonly bytes: number;
  /** Share of a volume that the file system uses for itself. */
  readonly overhead: number;
  /** Clone strategy of the class. Default: by snapshot, if supported. */
  readonly strategy?: CloneStrategy | undefined;
  /** Why the storage must not clone by itself, even if it could. Default: no obstacle. */
  readonly obstacle?: string | undefined;
}

export type CloneChoice =
  | {
      readonly is: 'chosen';
      readonly strategy: CloneStrategy;
      readonly because: string;
      /** The copy reads from a new snapshot. */
      readonly viaSnapshot?: true;
    }
  | { readonly is: 'waiting'; readonly reason: string; readonly message: string }
  | { readonly is: 'refused'; readonly reason: string; readonly message: string };

export const chooseClone = (source: CloneSource, target: CloneTarget): CloneChoice => {
  if (source.holdsFiles === true && target.volumeMode === 'Block') return noPlaceForFiles(source);
  if (isOtherContent(source, target)) return otherContent(source);
  const small = tooSmall(source, target);
  if (small !== undefined) return { is: 'refused', reason: 'TargetTooSmall', message: small };
  const obstacle = obstacleOf(source, target);
  const strategy = obstacle === undefined ? ownMeans(source, target) : undefined;
  if (strategy === undefined) return chooseCopy(source, obstacle ?? noMeans(source));
  if (strategy === 'csi-clone' && source.inUseBy !== undefined) return inUse(source, source.inUseBy);
  return { is: 'chosen', strategy, because: reasonsOf[strategy](source) };
};

const noPlaceForFiles = ({ what }: CloneSource): CloneChoice => ({
  is: 'refused',
  reason: 'TargetNotFileSystem',
  message: `${what} holds the files of an archive, but the requested volume is a block device: request volumeMode Filesystem`,
});

/** The content of a snapshot is known for golden ones only. */
const isOtherContent = (source: CloneSource, { holdsFiles }: CloneTarget): boolean => {
  const hasFiles = source.holdsFiles === true;
  return holdsFiles !== undefined && holdsFiles !== hasFiles && (hasFiles || source.hasClaim);
};

const otherContent = ({ what, holdsFiles }: CloneSource): CloneChoice => {
  const [found, asked] = holdsFiles === true ? ['archive', 'kubevirt'] : ['kubevirt', 'archive'];
  const message = `${what} has contentType ${found}, but ${asked} is requested: request contentType ${found}`;
  return { is: 'refused', reason: 'ContentTypeDiffers', message };
};

const reasonsOf = {
  snapshot: ({ what, driver = '' }) => `driver ${driver} restores a snapshot of ${what}`,
  'csi-clone': ({ what, driver = '' }) => `driver ${driver} clones the volume of ${what}`,
} as const satisfies Record<Exclude<CloneStrategy, 'copy'>, (source: CloneSource) => string>;

/**
 * Both sizes, and the size to request. A block volume is compared as a whole, a file system by the disk that fits into it; the content of one
 * volume always fits into another of the same size.
 */
const tooSmall = (source: CloneSource, target: CloneTarget): string | undefined => {
  if (source.volumeMode === target.volumeMode && target.bytes >= source.bytes) return undefined;
  const isWhole = source.volumeMode === 'Block' && target.volumeMode === 'Block';
  const needed = isWhole ? source.bytes : source.diskBytes;
  const room = diskBytesIn(target.bytes, target.volumeMode, target.overhead);
  if (room >= needed) return undefined;
  const [has, wants] = [formatBytes(room), formatBytes(needed)];
  return `the disk of ${source.what} has ${needed} bytes (${wants}), the requested volume has room for ${room} (${has}): request a larger one`;
};

/** Why the storage cannot clone by itself at all. */
const obstacleOf = (source: CloneSource, target: CloneTarget): string | undefined => {
  const { storageClass, volumeMode, bytes, obstacle } = target;
  const { provisioner, metadata } = storageClass;
  if (obstacle !== undefined) return obstacle;
  if (source.volumeMode !== volumeMode) return `a ${source.volumeMode} volume becomes a ${volumeMode} one`;
  if (source.driver !== provisioner)
    return `it is on ${source.driver ?? 'no known driver'}, the class is of ${provisioner}`;
  if (target.strategy === 'copy') return `class ${metadata.name} asks for it`;
  if (bytes < source.bytes) return 'the new volume is smaller than the old one, though its disk fits';
  if (bytes === source.bytes) return undefined;
  if (volumeMode === 'Filesystem' && source.holdsFiles !== true) return 'the disk in the file system grows';
  return storageClass.allowVolumeExpansion === true ? undefined : `class ${metadata.name} cannot expand volumes`;
};

/**
 * An existing snapshot comes first: it is never in use. A new one is as good, but takes longer than a clone; for a volume in use it is the only
 * way.
 */
const ownMeans = (source: CloneSource, { strategy }: CloneTarget): 'snapshot' | 'csi-clone' | undefined => {
  if (source.hasSnapshot) return 'snapshot';
  const canSnapshot = source.hasClaim && source.snapshotClass !== undefined;
  if (source.inUseBy !== undefined && canSnapshot) return 'snapshot';
  if (source.hasClaim && strategy === 'csi-clone') return 'csi-clone';
  return canSnapshot ? 'snapshot' : undefined;
};

const noMeans = ({ driver = 'no known driver' }: CloneSource): string =>
  `${driver} makes no snapshots and is not known to clone`;

const chooseCopy = (source: CloneSource, because: string): CloneChoice => {
  if (!source.hasClaim) return chooseRestored(source, because);
  if (source.inUseBy !== undefined) return chooseUsed(source, source.inUseBy, because);
  return { is: 'chosen', strategy: 'copy', because };
};

const chooseUsed = (source: CloneSource, pod: string, because: string): CloneChoice =>
  source.snapshotClass === undefined || source.restoreClass === undefined
    ? inUse(source, pod)
    : {
        is: 'chosen',
        strategy: 'copy',
        because: `${because}; a snapshot of it is read, because pod ${pod} may write to it`,
        viaSnapshot: true,
      };

const chooseRestored = ({ what, driver, restoreClass }: CloneSource, because: string): CloneChoice => {
  if (restoreClass !== undefined)
    return {
      is: 'chosen',
      strategy: 'copy',
      because: `${because}; the snapshot is restored first, for the copy alone`,
    };
  const message = `${what} cannot be restored as requested (${because}), nor be copied: no storage class uses its driver${driver === undefined ? ', which is unknown' : ` ${driver}`}`;
  return { is: 'refused', reason: 'SnapshotNotRestorable', message };
};

const inUse = ({ what }: CloneSource, pod: string): CloneChoice => ({
  is: 'waiting',
  reason: 'SourceInUse',
  message: `${what} is in use by pod ${pod}, which may write to it: stop it, or make the volume from a snapshot`,
});

// How a claim was made, recorded on the claim itself: later passes need it when the source is gone or has changed.

export const CloneRecord = z.object({
  strategy: z.enum(cloneStrategies),
  because: z.string(),
  /** The claim that a Job copies. `restored`: it was created from a snapshot for this copy only. */
  from: z
    .object({ name: z.string(), volumeMode: z.enum(['Filesystem', 'Block']), restored: z.literal(true).optional() })
    .optional(),
  /** The persistent volume that was filled in the namespace of the source and handed over to this claim. */
  volume: z.string().optional(),
  /** The known content of the source. */
  population: Population.optional(),
  /** Labels of the source that describe how to run its guest. */
  labels: z.record(z.string(), z.string()).optional(),
});
export type CloneRecord = z.infer<typeof CloneRecord>;

export const recordAnnotation = (record: CloneRecord): Readonly<Record<string, string>> => ({
  [annotations.clone]: JSON.stringify(record),
  [cdiAnnotations.cloneType]: record.strategy,
  ...(record.strategy === 'copy' ? { [cdiAnnotations.cloneFallbackReason]: record.because } : {}),
});

/** `undefined` if the claim is not a clone. */
export const recordOf = (claim: PersistentVolumeClaim | undefined): CloneRecord | undefined =>
  parseJsonAs(CloneRecord, claim?.metadata.annotations?.[annotations.clone]);
