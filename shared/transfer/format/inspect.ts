// Entry point of the formats: reads the header of a disk, and verifies the whole file.
import type { ImageFormat } from '#shared/transfer/format/detect.ts';
import type { DiskHeader, DiskReader } from '#shared/transfer/format/disk.ts';
import { readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { inspectVdi, verifyVdi } from '#shared/transfer/format/vdi.ts';
import { inspectVhd, verifyVhd } from '#shared/transfer/format/vhd.ts';
import { inspectVhdx, verifyVhdx } from '#shared/transfer/format/vhdx.ts';
import { inspectVmdk, verifyVmdk } from '#shared/transfer/format/vmdk.ts';

/** Formats with a structure of their own; raw disks and ISOs are the guest's bytes. */
export type StructuredFormat = Exclude<ImageFormat, 'raw' | 'iso'>;

export const isStructured = (format: ImageFormat): format is StructuredFormat => format !== 'raw' && format !== 'iso';

interface FormatRules {
  /** Reads the header and rejects unsupported or unsafe files. */
  readonly inspect: (reader: DiskReader) => Promise<DiskHeader>;
  /** Verifies that everything the tables refer to is in the file. Undefined if qemu-img check does it. */
  readonly verify?: (reader: DiskReader) => Promise<void>;
}

const rules: Readonly<Record<StructuredFormat, FormatRules>> = {
  qcow2: {
    inspect: async (reader) => ({ format: 'qcow2', virtualSize: (await readQcow2Header(reader)).virtualSize }),
  },
  vmdk: { inspect: inspectVmdk, verify: verifyVmdk },
  vdi: { inspect: inspectVdi, verify: verifyVdi },
  vhd: { inspect: inspectVhd, verify: verifyVhd },
  vhdx: { inspect: inspectVhdx, verify: verifyVhdx },
};

/** Throws TransferError: ImageCorrupt, ImageTruncated, ImageEncrypted, ExternalReference, UnsupportedFormat. */
export const inspectDisk = (format: StructuredFormat, reader: DiskReader): Promise<DiskHeader> =>
  rules[format].inspect(reader);

/** Throws TransferError: ImageCorrupt, ImageTruncated. */
export const verifyDisk = async (format: StructuredFormat, reader: DiskReader): Promise<void> =>
  rules[format].verify?.(reader);
