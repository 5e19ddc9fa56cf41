// Progress of a transfer: the data of `dev.bullion.transfer.progressed`.
import { z } from 'zod';
import { Inspection } from '#shared/transfer/report.ts';

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
