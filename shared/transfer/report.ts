// The final report of a transfer: transfer-job writes it as its termination message, and a backend reads it.
import { z } from 'zod';
import { type TransferFault, transferFaults } from './fault.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

export { type TransferFault, transferFaults };

/** Kubernetes keeps at most 4096 bytes of a termination message. */
export const maxReportBytes = 4096;

export const imageFormats = ['qcow2', 'raw', 'iso', 'vmdk', 'vdi', 'vhd', 'vhdx'] as const;
/** Files instead of a disk. */
export const archiveFormat = 'tar';
export const compressions = ['none', 'gz', 'xz', 'zst'] as const;

/** The result of inspecting the source. Missing fields are not known yet. */
export const Inspection = z.object({
  format: z.enum([...imageFormats, archiveFormat]),
  compression: z.enum(compressions),
  /** Bytes of the file as published. */
  size: z.number().int().nonnegative().optional(),
  /** Bytes of the guest's disk. */
  virtualSize: z.number().int().nonnegative().optional(),
  /** Labels of the image that describe how to run the disk. */
  labels: z.record(z.string(), z.string()).optional(),
});
export type Inspection = z.infer<typeof Inspection>;

// Progress of a transfer: the data of `dev.bullion.transfer.progressed`.

export const transferPhases = ['Inspecting', 'Downloading', 'Converting', 'Verifying'] as const;
export type TransferPhase = (typeof transferPhases)[number];

export const TransferProgress = z.object({
  /** One run of the worker (name of a Job pod). Progress is monotonic within a run, and a new run starts at 0. */
  run: z.string(),
  /** RFC 3339; orders runs. */
  startedAt: z.string(),
  /** Increases by one with each report of a run; orders reports. */
  sequence: z.number().int().nonnegative(),
  phase: z.enum(transferPhases),
  /** 0..99 over all phases; 100 is set only by the control plane once the image is usable. */
  percent: z.number().min(0).max(99),
  receivedBytes: z.number().int().nonnegative(),
  totalBytes: z.number().int().nonnegative().optional(),
  bytesPerSecond: z.number().nonnegative().optional(),
  etaSeconds: z.number().nonnegative().optional(),
  /** Known once the source was inspected; sent before the first byte is written to the target. */
  inspection: Inspection.optional(),
  /** A transient fault that is being retried in this run, for the image's message. */
  note: z.string().optional(),
});
export type TransferProgress = z.infer<typeof TransferProgress>;

/** The inspection of an archive, and of copies of its files. */
export const filesFound: Inspection = { format: archiveFormat, compression: 'none' };

const StoredResult = z.object({
  /** Bytes of the object. */
  size: z.number().int().nonnegative(),
  /** With its quotes. */
  etag: z.string().optional(),
  versionId: z.string().optional(),
  /** Of the manifest, of an image in a registry. */
  digest: z.string().optional(),
  /** The store also computed the CRC-32 of the whole object, with the same result. */
  isConfirmed: z.boolean(),
});
export type StoredResult = z.infer<typeof StoredResult>;

const BackupResult = z.object({
  /** Identifies the disk by its content. */
  disk: z.string(),
  /** Number of chunks that are not zero, and of those that were sent. */
  chunks: z.number().int().nonnegative(),
  newChunks: z.number().int().nonnegative(),
  sentBytes: z.number().int().nonnegative(),
});
export type BackupResult = z.infer<typeof BackupResult>;

const faultNames = Object.keys(transferFaults) as [TransferFault, ...TransferFault[]];

export const TransferReport = z.discriminatedUnion('outcome', [
  z.object({
    outcome: z.literal('succeeded'),
    inspection: Inspection,
    /**
     * Hex digests of the published file: the requested algorithm, and always sha256 if the whole file was read. For an exported object: crc32,
     * and sha256 if it was written from start to end; `guest-sha256` is the digest of the disk.
     */
    digests: z.record(z.string(), z.string()).default({}),
    /** Bytes received over the network, including repetitions. */
    receivedBytes: z.number().int().nonnegative(),
    /** Nonzero guest bytes that were written; a few of them twice if the transfer was resumed. */
    writtenBytes: z.number().int().nonnegative(),
    seconds: z.number().nonnegative(),
    /** Where the bytes came from, if mirrors are configured for the source. */
    servedFrom: z.string().optional(),
    /** The exported object. */
    object: StoredResult.optional(),
    backup: BackupResult.optional(),
  }),
  z.object({
    outcome: z.literal('failed'),
    reason: z.enum(faultNames),
    /** One sentence with the observed facts, for users; contains no secret. */
    message: z.string(),
    retryable: z.boolean(),
    /** Of an export: nothing was begun at its destination. */
    sentNothing: z.literal(true).optional(),
    inspection: Inspection.optional(),
    receivedBytes: z.number().int().nonnegative().default(0),
  }),
]);
export type TransferReport = z.infer<typeof TransferReport>;

/** Parses a termination message. `undefined` if there is none or if it is not a report (killed, out of memory). */
export const parseReport = (message: string | undefined): TransferReport | undefined =>
  parseJsonAs(TransferReport, message);
