// cdi.kubevirt.io DataImportCron, in the shape its operator released and in the short shape of its design document.
import { z } from 'zod';
import { withRules } from '#shared/api/kind.ts';

const Access = {
  secretRef: z.string().optional().describe('Secret with credentials, in the namespace of the cron'),
  certConfigMap: z.string().optional().describe('ConfigMap with CA certificates, in the namespace of the cron'),
} as const;

/** A source that can be followed. The loose form is what a template may carry beside. */
const CronSourceSpec = z.looseObject({
  registry: z
    .looseObject({
      url: z.string().optional().describe('docker://host[:port]/repository[:tag][@digest]'),
      tags: z.string().optional().describe('range of versions to take the newest tag of, such as ">=39 <41"'),
      pullMethod: z.string().optional().describe('accepted for its shape: images are always pulled by the transfer'),
      imageStream: z.string().optional().describe('refused by admission'),
      platform: z.looseObject({ architecture: z.string().optional() }).optional(),
      ...Access,
    })
    .optional(),
  http: z
    .looseObject({
      url: z.string(),
      checksumURL: z.string().optional().describe('SHA256SUMS, SHA512SUMS or a sidecar file that tells the digest'),
      ...Access,
    })
    .optional(),
  pvc: z.looseObject({ namespace: z.string().optional(), name: z.string() }).optional(),
});
export type CronSourceSpec = z.infer<typeof CronSourceSpec>;

const CronTemplate = z
  .looseObject({
    metadata: z
      .looseObject({
        labels: z.record(z.string(), z.string()).optional(),
        annotations: z.record(z.string(), z.string()).optional(),
      })
      .optional(),
    spec: z.looseObject({ source: CronSourceSpec.optional() }),
  })
  .describe('the DataVolume of each version; its source is followed');

const DataImportCronSpec = z
  .object({
    template: CronTemplate.optional(),
    source: CronSourceSpec.optional().describe('the short form: size and storage are found out'),
    schedule: z
      .string()
      .describe('five fields, a descriptor or @every, with TZ=… before it; empty: never polls by itself'),
    managedDataSource: z.string().min(1).max(63).describe('DataSource that points to the newest version'),
    garbageCollect: z.enum(['Outdated', 'Never']).optional().describe('left out: Outdated'),
    garbageCollectOutdated: z.boolean().optional().describe('the short form of garbageCollect'),
    importsToKeep: z.int32().min(0).optional().describe('versions to keep, at least 1; left out: 3'),
    retentionPolicy: z
      .string()
      .optional()
      .describe('None: versions and DataSource go with the cron; All, the default: they stay'),
    serviceAccountName: z.string().min(1).optional().describe('who must be allowed to clone a pvc source'),
    createdBy: z.string().optional(),
  })
  .meta(
    withRules(
      { rule: 'self == oldSelf', message: 'Cannot update DataImportCron Spec: delete it and create it anew' },
      { rule: 'has(self.template) != has(self.source)', message: 'exactly one of template and source must be set' },
    ),
  );
export type DataImportCronSpec = z.infer<typeof DataImportCronSpec>;
