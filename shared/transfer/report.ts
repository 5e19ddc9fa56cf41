// The last word of a transfer: what transfer-job leaves as its termination message and a backend reads.
import { z } from 'zod';
import { type TransferFault, transferFaults } from '#shared/transfer/fault.ts';

export { type TransferFault, transferFaults };

/** Kubernetes keeps at most 4096 bytes of a termination message. */
export const maxReportBytes = 4096;

export const imageFormats = ['qcow2', 'raw', 'iso', 'vmdk', 'vdi', 'vhd', 'vhdx'] as const;
/** Files, and no disk. */
export const archiveFormat = 'tar';
export const compressions = ['none', 'gz', 'xz', 'zst'] as const;

/** What looking at the source told. Absent fields are not known yet. */
export const Inspection = z.object({
  format: z.enum([...imageFormats, archiveFormat]),
  compression: z.enum(compressions),
  /** Bytes of the file as published. */
  size: z.number().int().nonnegative().optional(),
  /** Bytes of the disk a guest sees. */
  virtualSize: z.number().int().nonnegative().optional(),
  /** How to run the disk, as its image says. */
  labels: z.record(z.string(), z.string()).optional(),
});
export type Inspection = z.infer<typeof Inspection>;

/** What an archive is unpacked to, and what is copied from that. */
export const filesFound: Inspection = { format: archiveFormat, compression: 'none' };

const StoredResult = z.object({
  /** Bytes of the object. */
  size: z.number().int().nonnegative(),
  /** With its quotes. */
  etag: z.string().optional(),
  versionId: z.string().optional(),
  /** The store computed the CRC-32 of the whole object, too, and found the same. */
  isConfirmed: z.boolean(),
});
export type StoredResult = z.infer<typeof StoredResult>;

const BackupResult = z.object({
  /** Names the disk by its content. */
  disk: z.string(),
  /** Chunks that are not all zero, and those of them that had to be sent. */
  chunks: z.number().int().nonnegative(),
  newChunks: z.number().int().nonnegative(),
  /** Bytes that were sent. */
  sentBytes: z.number().int().nonnegative(),
});
export type BackupResult = z.infer<typeof BackupResult>;

const faultNames = Object.keys(transferFaults) as [TransferFault, ...TransferFault[]];

export const TransferReport = z.discriminatedUnion('outcome', [
  z.object({
    outcome: z.literal('succeeded'),
    inspection: Inspection,
    /**
     * Hex digests of the published file: the algorithm asked for, and sha256 always when the whole file was read. Of an export's object: crc32, and
     * sha256 where it was made front to back; `guest-sha256` is that of the disk.
     */
    digests: z.record(z.string(), z.string()).default({}),
    /** Bytes received over the wire, repeats included. */
    receivedBytes: z.number().int().nonnegative(),
    /** Guest bytes that are not zero and were written; where another process was gone on with, a few of them twice. */
    writtenBytes: z.number().int().nonnegative(),
    seconds: z.number().nonnegative(),
    /** What an export made. */
    object: StoredResult.optional(),
    /** What a backup made. */
    backup: BackupResult.optional(),
  }),
  z.object({
    outcome: z.literal('failed'),
    reason: z.enum(faultNames),
    /** One sentence with the observed facts, fit to show a user; holds no secret. */
    message: z.string(),
    retryable: z.boolean(),
    inspection: Inspection.optional(),
    receivedBytes: z.number().int().nonnegative().default(0),
  }),
]);
export type TransferReport = z.infer<typeof TransferReport>;

/** Reads a termination message. `undefined` when there is none or it is not ours (killed, out of memory). */
export const parseReport = (message: string | undefined): TransferReport | undefined => {
  if (message === undefined || message === '') return undefined;
  try {
    return TransferReport.safeParse(JSON.parse(message)).data;
  } catch {
    return undefined;
  }
};
