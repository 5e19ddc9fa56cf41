// How versions of a golden image end: the parts of a GoldenImagePolicy that say when disks should not be made from them any more, and when they go.
import { z } from 'zod';
import { ObjectName } from '#shared/api/kind.ts';

export const DeprecationRule = z
  .object({
    after: z.string().optional().describe('age at which a version is deprecated, such as 60d'),
    obsoleteAfter: z.string().optional().describe('age at which a version is obsolete, such as 120d'),
    replacement: ObjectName.optional().describe('DataSource of this namespace to use instead'),
  })
  .describe(
    'versions that age: disks are made from a deprecated one with a warning, and no new ones from an obsolete one. Channels keep what they have; left out: never',
  );

export const RetentionRule = z
  .object({
    keep: z
      .int()
      .min(1)
      .max(1000)
      .optional()
      .describe('how many versions of each cron stay, those used last; left out: importsToKeep of the cron'),
    maxAge: z.string().optional().describe('a version stays until it is that old, such as 90d'),
    unusedFor: z
      .string()
      .optional()
      .describe('a version stays until no disk was made from it for that long, such as 30d'),
    undeleteFor: z
      .string()
      .optional()
      .describe(
        'for how long a version that nothing keeps can be brought back, such as 7d (bullion undelete); left out: it is removed at once',
      ),
  })
  .describe(
    'which versions are kept, in place of importsToKeep: a version is removed once nothing keeps it. Versions that a channel has or waits for, that are pinned or locked, or that are read from are kept as well',
  );

export const CopiesRule = z
  .object({
    prewarm: z
      .array(ObjectName.min(1))
      .max(16)
      .optional()
      .describe('storage classes that each version is copied into as soon as it is imported'),
    onFirstUse: z
      .boolean()
      .optional()
      .describe('true: the first disk in any other class has the version copied into that class; left out: false'),
    unusedFor: z
      .string()
      .optional()
      .describe('a copy goes once no disk was made from it for that long, such as 30d; left out: 7d'),
  })
  .describe(
    'copies of versions in other storage classes, so that disks there are cloned by the storage. They use storage and quota of this namespace; left out: none are made, and each such disk is copied by a Job',
  );

/** Whether disks should still be made from a version, or from whatever a channel has. */
export const DeprecationStatus = z.object({
  state: z
    .enum(['Deprecated', 'Obsolete'])
    .describe('Deprecated: disks are made with a warning; Obsolete: no new ones'),
  since: z.string().optional().describe('RFC 3339'),
  message: z.string().describe('why'),
  replacement: z.string().optional().describe('DataSource to use instead'),
  by: z.string().optional().describe('who decided it; left out: its age'),
});
export type DeprecationStatus = z.infer<typeof DeprecationStatus>;
