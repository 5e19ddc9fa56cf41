// How a claim came to be, kept on the claim itself: what a later pass needs when the source is gone or has changed since.
import { z } from 'zod';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import { cloneStrategies } from '#shared/populate/clone.ts';
import { Population } from '#shared/populate/volume.ts';

export const CloneRecord = z.object({
  strategy: z.enum(cloneStrategies),
  because: z.string(),
  /** The claim that a Job copies. `restored`: it was made for that alone, of a snapshot. */
  from: z
    .object({ name: z.string(), volumeMode: z.enum(['Filesystem', 'Block']), restored: z.literal(true).optional() })
    .optional(),
  /** The persistent volume that was filled in the source's namespace and handed over to this claim. */
  volume: z.string().optional(),
  /** What is known of the source's content. */
  population: Population.optional(),
  /** Labels of the source that tell how to run what is in it. */
  labels: z.record(z.string(), z.string()).optional(),
});
export type CloneRecord = z.infer<typeof CloneRecord>;

export const recordAnnotation = (record: CloneRecord): Readonly<Record<string, string>> => ({
  [annotations.clone]: JSON.stringify(record),
  [cdiAnnotations.cloneType]: record.strategy,
  ...(record.strategy === 'copy' ? { [cdiAnnotations.cloneFallbackReason]: record.because } : {}),
});

/** `undefined` for claims that are no clones. */
export const recordOf = (claim: PersistentVolumeClaim | undefined): CloneRecord | undefined => {
  try {
    return CloneRecord.safeParse(JSON.parse(claim?.metadata.annotations?.[annotations.clone] ?? 'null')).data;
  } catch {
    return undefined;
  }
};
