// cdi.kubevirt.io DataImportCron, in the released form of its operator and in the short form of its design document.
import { z } from 'zod';
import { CdiCondition } from '#shared/api/conditions.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import { NamespaceName, ObjectName, Int64, type ServedKind, withRules } from '#shared/api/kind.ts';
import type { KubeObject } from '#shared/api/object.ts';

const Access = {
  secretRef: ObjectName.optional().describe('Secret with credentials, in the namespace of the cron'),
  certConfigMap: ObjectName.optional().describe('ConfigMap with CA certificates, in the namespace of the cron'),
} as const;

/** A source that can be polled. The loose form accepts additional fields in a template. */
export const CronSourceSpec = z.looseObject({
  registry: z
    .looseObject({
      url: z.string().optional().describe('docker://host[:port]/repository[:tag][@digest]'),
      tags: z.string().optional().describe('range of versions to take the newest tag of, such as ">=39 <41"'),
      pullMethod: z
        .string()
        .optional()
        .describe('accepted for compatibility: images are always pulled by the transfer'),
      imageStream: z.string().optional().describe('refused by admission'),
      platform: z.looseObject({ architecture: z.string().optional() }).optional(),
      ...Access,
    })
    .optional(),
  http: z
    .looseObject({
      url: z.string(),
      checksumURL: z.string().optional().describe('SHA256SUMS, SHA512SUMS or a sidecar file that states the digest'),
      ...Access,
    })
    .optional(),
  s3: z.looseObject({ url: z.string().describe('https://<store>/<bucket>/<key>'), ...Access }).optional(),
  pvc: z.looseObject({ namespace: NamespaceName.optional(), name: ObjectName }).optional(),
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

export const DataImportCronSpec = z
  .object({
    template: CronTemplate.optional(),
    source: CronSourceSpec.optional().describe('the short form: size and storage are detected'),
    schedule: z
      .string()
      .describe('five fields, a descriptor or @every, with TZ=… before it; empty: never polls by itself'),
    managedDataSource: ObjectName.min(1).max(63).describe('DataSource that points to the newest version'),
    garbageCollect: z.enum(['Outdated', 'Never']).optional().describe('default: Outdated'),
    garbageCollectOutdated: z.boolean().optional().describe('the short form of garbageCollect'),
    importsToKeep: z.int32().min(0).optional().describe('versions to keep, at least 1; default: 3'),
    retentionPolicy: z
      .string()
      .optional()
      .describe('None: versions and DataSource are deleted with the cron; All, the default: they stay'),
    serviceAccountName: ObjectName.min(1).optional().describe('who must be allowed to clone a pvc source'),
    createdBy: z.string().optional(),
  })
  .meta(
    withRules(
      { rule: 'self == oldSelf', message: 'Cannot update DataImportCron Spec: delete it and create it again' },
      { rule: 'has(self.template) != has(self.source)', message: 'exactly one of template and source must be set' },
    ),
  );
export type DataImportCronSpec = z.infer<typeof DataImportCronSpec>;

export const PollStatus = z
  .object({
    time: z.string().describe('RFC 3339'),
    outcome: z.enum(['Same', 'Changed', 'Failed']),
    message: z.string().describe('why'),
    reason: z.string().optional().describe('of a failure; RateLimited: the host asked for a pause'),
    failures: z.int().describe('consecutive polls that failed'),
    answered: z.string().optional().describe('RFC 3339: when the source answered last'),
    tag: z.string().optional().describe('tag the range led to'),
    sourceDigest: z.string().optional().describe('digest of what the reference names, an index perhaps'),
    etag: z.string().optional(),
    lastModified: z.string().optional(),
  })
  .describe('what the newest poll decided, and why');
export type PollStatus = z.infer<typeof PollStatus>;

const CronWaiting = z
  .object({ message: z.string().describe('for whom'), until: z.string().describe('RFC 3339: the next attempt') })
  .describe('the host of the source asked for a pause: it is not polled meanwhile, and no attempt is counted');

export const CronCounts = z
  .object({
    polled: z.int().optional().describe('sources polled'),
    pollsFailed: z.int().optional().describe('polls without an answer'),
    imported: z.int().optional().describe('versions that came into use'),
    superseded: z.int().optional().describe('imports superseded by a newer one'),
    failed: z.int().optional().describe('imports that failed for good'),
    collected: z.int().optional().describe('versions that were removed, since newer ones are kept'),
  })
  .describe('over the life of the cron; monitoring reads them');
export type CronCounts = z.infer<typeof CronCounts>;

const DeletedVersion = z.object({
  name: z.string(),
  time: z.string().describe('RFC 3339: since when it is gone'),
  until: z.string().describe('RFC 3339: until when it can be brought back'),
  bytes: Int64.optional().describe('what comes free then'),
});

const CronRetention = z
  .object({
    rule: z.string().describe('fingerprint of what the policy asks for: after a change versions are judged again'),
    next: z.string().optional().describe('RFC 3339: when versions are judged again, since one may come of age'),
    keeps: z
      .boolean()
      .optional()
      .describe('true: storage of versions outlives its claims, so that they can be brought back'),
    pending: z.int().optional().describe('whose storage is yet to be marked so, or unmarked: how many'),
  })
  .describe('what its GoldenImagePolicy asks for in place of importsToKeep');
export type CronRetention = z.infer<typeof CronRetention>;

export const DataImportCronStatus = z.object({
  observedGeneration: Int64.optional().describe('the generation of spec this status was decided for'),
  currentImports: z
    .array(
      z.object({
        DataVolumeName: z.string(),
        Digest: z.string(),
        Validator: z
          .string()
          .optional()
          .describe('what was used in place of the digest before the file was fetched, if its server reports none'),
      }),
    )
    .optional()
    .describe('the version to import; imported, or being imported'),
  lastImportedPVC: z
    .object({ namespace: z.string(), name: z.string() })
    .optional()
    .describe('the version in use; a snapshot of this name if sourceFormat is snapshot'),
  lastImportTimestamp: z.string().optional(),
  lastExecutionTimestamp: z.string().optional().describe('when the source was polled last'),
  nextExecutionTimestamp: z.string().optional().describe('when the source is polled next'),
  sourceFormat: z.string().optional().describe('pvc or snapshot'),
  snapshotClass: z.string().optional().describe('of the snapshot in use'),
  importsToKeep: z.int().optional().describe('the number in effect'),
  lastPoll: PollStatus.optional(),
  waiting: CronWaiting.optional(),
  counts: CronCounts.optional(),
  retention: CronRetention.optional(),
  deleted: z
    .array(DeletedVersion)
    .optional()
    .describe('versions that somebody deleted, and that can be brought back (bullion undelete)'),
  retryHandled: z.string().optional().describe('the newest value of the retry annotation that was acted on'),
  announced: z.string().optional().describe('the final transition that was sent out as an event'),
  conditions: z.array(CdiCondition).optional(),
});
export type DataImportCronStatus = z.infer<typeof DataImportCronStatus>;

export interface DataImportCron extends KubeObject {
  readonly spec: DataImportCronSpec;
  readonly status?: DataImportCronStatus;
}

export const dataImportCronKind: ServedKind<DataImportCron> = {
  type: { group: cdiGroup, version: 'v1beta1', kind: 'DataImportCron', plural: 'dataimportcrons', namespaced: true },
  singular: 'dataimportcron',
  shortNames: ['dic', 'dics'],
  categories: ['all'],
  description: 'Follows a source of golden images: imports each new version and points a DataSource to the newest.',
  spec: DataImportCronSpec,
  status: DataImportCronStatus,
  columns: [
    {
      name: 'Format',
      type: 'string',
      jsonPath: '.status.sourceFormat',
      description: 'The format in which created sources are saved',
    },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Version', type: 'string', jsonPath: '.status.lastImportedPVC.name' },
    { name: 'UpToDate', type: 'string', jsonPath: '.status.conditions[?(@.type=="UpToDate")].status' },
    { name: 'Imported', type: 'date', jsonPath: '.status.lastImportTimestamp' },
    { name: 'LastPoll', type: 'date', jsonPath: '.status.lastExecutionTimestamp' },
    { name: 'Decision', type: 'string', jsonPath: '.status.lastPoll.outcome' },
    { name: 'NextPoll', type: 'string', jsonPath: '.status.nextExecutionTimestamp' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
