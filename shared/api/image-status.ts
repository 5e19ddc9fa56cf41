// Status fields of every image kind: written by the dialects, read by users, tools and the next pass.
import { z } from 'zod';
import { Int64 } from '#shared/api/kind.ts';

export const ConditionSchema = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  reason: z.string().optional().describe('CamelCase, stable: fit for scripts'),
  message: z.string().optional().describe('a message for people: what is wrong and what to do'),
  observedGeneration: Int64.optional(),
  lastUpdateTime: z.string().optional(),
  lastTransitionTime: z.string().optional(),
});

export const ChildrenStatus = z
  .object({
    volume: z.string().optional(),
    snapshot: z.string().optional(),
    job: z.string().optional(),
    backingImage: z.string().optional(),
    storageClass: z.string().optional(),
  })
  .describe('names of the objects made for this image');

export const TransferStatus = z
  .object({
    run: z.string().describe('pod of the attempt'),
    reportedAt: z.string().describe('RFC 3339: when this was recorded'),
    startedAt: z.string(),
    sequence: z.int(),
    phase: z.string(),
    percent: z.number(),
    receivedBytes: Int64,
    totalBytes: Int64.optional(),
    bytesPerSecond: z.number().optional(),
    etaSeconds: z.number().optional(),
    note: z.string().optional().describe('a fault that is being retried within this attempt'),
  })
  .describe('the newest report of the running transfer');

export const BackupStatus = z
  .object({
    target: z.string().describe('where: `<store>/<bucket>`, or `nfs://<server>:<path>`'),
    object: z.string().optional().describe('key of the metadata'),
    revision: z.string().optional().describe('of that object, in the words of the store'),
    digest: z.string().optional().describe('digest of the metadata: a different one causes it to be written again'),
    disk: z.string().optional().describe('digest that names the disk in the target'),
    storage: z
      .object({ url: z.string(), checksum: z.string().optional() })
      .optional()
      .describe('where the storage keeps the disk by itself'),
    bytes: Int64.optional().describe('bytes the newest backup had to send'),
    time: z.string().optional().describe('RFC 3339: when this was last found or made so'),
  })
  .describe('what a backup target holds of this image');
export type BackupStatus = z.infer<typeof BackupStatus>;

/** Common status fields of the image kinds; a kind adds its own. */
export const imageStatusShape = {
  observedGeneration: Int64.optional().describe('the generation of spec this status was decided for'),
  progress: z.int().optional().describe('percent; 100 only when the image is usable'),
  size: Int64.optional().describe('bytes of the file as published'),
  virtualSize: Int64.optional().describe('bytes of the disk a guest sees'),
  format: z.string().optional().describe('found by content: qcow2, raw, iso, …'),
  compression: z.string().optional().describe('around the format: none, gz, xz, zst'),
  digests: z.record(z.string(), z.string()).optional().describe('of the file as published, by algorithm'),
  lostDigests: z
    .record(z.string(), z.string())
    .optional()
    .describe('digests of the content before it was lost; default: nothing was lost, or spec has a checksum'),
  storageClassName: z.string().optional().describe('storage class of the golden volume'),
  fetchReason: z
    .string()
    .optional()
    .describe('why the bytes were fetched although the namespace has or had the same content; default: it had not'),
  servedFrom: z
    .string()
    .optional()
    .describe(
      'where the bytes came from, if mirrors are configured for the source, and why not from a place before it',
    ),
  attempts: z.int().optional().describe('attempts of the present transfer that have begun'),
  attemptsFailed: z.int().optional().describe('attempts of the present transfer that failed'),
  attemptsAllowed: z.int().optional().describe('attempts there are before the image fails'),
  failed: z.int().min(0).default(0).optional().describe('attempts that failed, over the life of the object'),
  lastFailedTime: z.string().optional().describe('RFC 3339'),
  lastFailure: z
    .object({ reason: z.string(), message: z.string() })
    .optional()
    .describe('how the newest failed attempt of the present transfer ended'),
  nextAttemptTime: z.string().optional().describe('RFC 3339: when the next attempt starts'),
  deadline: z.string().optional().describe('RFC 3339: when what is waited for now counts as stuck'),
  retryHandled: z.string().optional().describe('value of the bullion.dev/retry annotation that was acted on'),
  children: ChildrenStatus.optional(),
  transfer: TransferStatus.optional(),
  announced: z.string().optional().describe('the final transition that was sent out as an event'),
  conditions: z.array(ConditionSchema).optional(),
} as const;

const CommonStatus = z.object(imageStatusShape);
export type CommonImageStatus = z.infer<typeof CommonStatus>;
