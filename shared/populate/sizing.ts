// How large a volume must be to hold a disk, and how large a disk fits into a volume. Sizes are bytes.
import type { VolumeMode } from '#shared/api/foreign/core.ts';

const mebibyte = 2 ** 20;

/** Journals and tables of a file system have a fixed cost too, which dominates on small volumes. */
const fixedOverhead = 64 * mebibyte;

const roundUp = (bytes: number): number => Math.max(1, Math.ceil(bytes / mebibyte)) * mebibyte;

/**
 * Size to ask for so that a disk of `diskBytes` fits: the disk itself on a block device, the disk as a file otherwise. CDI's arithmetic: whole
 * mebibytes of disk, and the overhead as a share of them.
 */
export const volumeBytesFor = (diskBytes: number, mode: VolumeMode, overhead: number): number => {
  const disk = roundUp(diskBytes);
  return mode === 'Block' ? disk : Math.ceil((1 + overhead) * disk);
};

/** Size of a volume of ours that a file of `fileBytes` is written into whole: unlike a disk's, none of it is left out as a hole. */
export const fileVolumeBytesFor = (fileBytes: number, overhead: number): number =>
  Math.max(volumeBytesFor(fileBytes, 'Filesystem', overhead), roundUp(fileBytes) + fixedOverhead);

/** Largest disk to let into a volume of `volumeBytes`: at least what `volumeBytesFor` sized it for, never below one byte. */
export const diskBytesIn = (volumeBytes: number, mode: VolumeMode, overhead: number): number =>
  mode === 'Block'
    ? Math.max(1, volumeBytes)
    : Math.max(1, Math.floor(Math.ceil(volumeBytes / (1 + overhead)) / mebibyte) * mebibyte);
