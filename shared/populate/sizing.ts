// How large a volume must be to hold a disk, and how large a disk fits into a volume. Sizes are bytes.
import type { VolumeMode } from '#shared/api/foreign/core.ts';

const mebibyte = 2 ** 20;

/** Journals and tables of a file system have a fixed cost too, which dominates on small volumes. */
const leastOverhead = 64 * mebibyte;

const roundUp = (bytes: number): number => Math.max(1, Math.ceil(bytes / mebibyte)) * mebibyte;

/** Size to ask for so that a disk of `diskBytes` fits: the disk itself on a block device, the disk as a file otherwise. */
export const volumeBytesFor = (diskBytes: number, mode: VolumeMode, overhead: number): number => {
  const disk = roundUp(diskBytes);
  return mode === 'Block' ? disk : disk + Math.max(leastOverhead, roundUp(disk * overhead));
};

/** Largest disk to let into a volume of `volumeBytes`: at least what `volumeBytesFor` sized it for, never below one byte. */
export const diskBytesIn = (volumeBytes: number, mode: VolumeMode, overhead: number): number => {
  if (mode === 'Block') return Math.max(1, volumeBytes);
  // Rounded to the nearest MiB below, with a byte of slack so that a division that came out a hair short does not cost one.
  return Math.max(1, Math.floor((volumeBytes / (1 + overhead) + 1) / mebibyte) * mebibyte);
};
