// cdi.kubevirt.io DataVolume: every field of the original; unsupported fields are rejected with a message, never dropped.
import { z } from 'zod';
import { CdiCondition } from '#shared/api/conditions.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import { imageStatusShape } from '#shared/api/image-status.ts';
import { NamespaceName, ObjectName, Int64, QuantityValue, type ServedKind, withRules } from '#shared/api/kind.ts';
import type { KubeObject } from '#shared/api/object.ts';

const Named = z.object({ namespace: NamespaceName, name: ObjectName });
const Access = { url: z.string(), secretRef: ObjectName.optional(), certConfigMap: ObjectName.optional() };

const HttpSource = z.object({
  ...Access,
  checksum: z.string().optional().describe('<algorithm>:<hex> over the file as published'),
  extraHeaders: z.array(z.string()).optional(),
  secretExtraHeaders: z.array(ObjectName).optional(),
  insecureSkipVerify: z.boolean().optional(),
});

const RegistrySource = z.object({
  url: z.string().optional(),
  imageStream: z.string().optional(),
  pullMethod: z.string().optional(),
  secretRef: ObjectName.optional(),
  certConfigMap: ObjectName.optional(),
  platform: z.object({ architecture: z.string().optional() }).optional(),
});

const DataVolumeSource = z
  .object({
    http: HttpSource.optional(),
    registry: RegistrySource.optional(),
    pvc: Named.optional().describe('a volume to clone'),
    snapshot: Named.optional().describe('a snapshot to restore'),
    blank: z.looseObject({}).optional().describe('an empty disk'),
    upload: z.looseObject({}).optional(),
    s3: z.object(Access).optional(),
    gcs: z.object({ url: z.string(), secretRef: ObjectName.optional() }).optional(),
    imageio: z.object({ ...Access, diskId: z.string(), insecureSkipVerify: z.boolean().optional() }).optional(),
    vddk: z
      .object({
        url: z.string().optional(),
        secretRef: ObjectName.optional(),
        certConfigMap: ObjectName.optional(),
        uuid: z.string().optional(),
        backingFile: z.string().optional(),
        thumbprint: z.string().optional(),
        initImageURL: z.string().optional(),
        extraArgs: z.string().optional(),
      })
      .optional(),
  })
  .describe('where the content comes from: exactly one of the fields');

const Reference = z.object({
  apiGroup: z.string().optional(),
  kind: z.string(),
  name: ObjectName,
  namespace: NamespaceName.optional(),
});

const claimShape = {
  accessModes: z.array(z.enum(['ReadWriteOnce', 'ReadWriteMany', 'ReadOnlyMany', 'ReadWriteOncePod'])).optional(),
  volumeMode: z.enum(['Block', 'Filesystem']).optional(),
  storageClassName: ObjectName.optional(),
  volumeName: ObjectName.optional(),
  selector: z.looseObject({}).optional(),
  dataSource: Reference.optional(),
  dataSourceRef: Reference.optional(),
  resources: z
    .object({
      requests: z.record(z.string(), QuantityValue).optional(),
      limits: z.record(z.string(), QuantityValue).optional(),
    })
    .optional(),
} as const;

const DataVolumeSpec = z
  .object({
    source: DataVolumeSource.optional(),
    sourceRef: z
      .object({ kind: z.string(), namespace: NamespaceName.optional(), name: ObjectName })
      .optional()
      .describe('a DataSource, which names the source'),
    pvc: z
      .object({ ...claimShape, volumeAttributesClassName: ObjectName.optional() })
      .optional()
      .describe('the claim, as it is'),
    storage: z.object(claimShape).optional().describe('the claim; omitted fields are taken from the storage class'),
    contentType: z.enum(['kubevirt', 'archive']).optional(),
    preallocation: z.boolean().optional(),
    priorityClassName: ObjectName.optional(),
    serviceAccountName: ObjectName.optional(),
    checkpoints: z.array(z.object({ previous: z.string(), current: z.string() })).optional(),
    finalCheckpoint: z.boolean().optional(),
  })
  .meta(withRules({ rule: 'self == oldSelf', message: 'spec cannot be changed: create a new DataVolume instead' }));
export type DataVolumeSpec = z.infer<typeof DataVolumeSpec>;

const DataVolumeStatus = z.object({
  observedGeneration: Int64.optional().describe('the generation of spec this status was decided for'),
  claimName: z.string().optional(),
  phase: z.string().optional(),
  progress: z.string().optional().describe('percent, or N/A'),
  restartCount: z.int().optional().describe('attempts that failed'),
  conditions: z.array(CdiCondition).optional(),
  detail: z
    .object({
      phase: z.string().optional().describe('what happens now, whatever the source is'),
      reason: z.string().optional().describe('why it is so, where the conditions have one word for several'),
      cloneStrategy: z.string().optional().describe('snapshot, csi-clone or copy'),
      cloneReason: z.string().optional().describe('why so'),
      ...imageStatusShape,
    })
    .optional()
    .describe('attempts, deadlines and sizes, which the original does not report'),
});
export type DataVolumeStatus = z.infer<typeof DataVolumeStatus>;

export interface DataVolume extends KubeObject {
  readonly spec: DataVolumeSpec;
  readonly status?: DataVolumeStatus;
}

export const dataVolumeKind: ServedKind<DataVolume> = {
  type: { group: cdiGroup, version: 'v1beta1', kind: 'DataVolume', plural: 'datavolumes', namespaced: true },
  singular: 'datavolume',
  shortNames: ['dv', 'dvs'],
  categories: ['all'],
  description: 'A volume and what it is filled from: a web server, a registry, another volume, a snapshot, or nothing.',
  spec: DataVolumeSpec,
  status: DataVolumeStatus,
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'The phase the data volume is in' },
    {
      name: 'Progress',
      type: 'string',
      jsonPath: '.status.progress',
      description: 'Transfer progress in percentage if known, N/A otherwise',
    },
    {
      name: 'Restarts',
      type: 'integer',
      jsonPath: '.status.restartCount',
      description: 'The number of times the transfer has been restarted.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
  ],
};

/** The resource type for clients. */
export const dataVolumes = dataVolumeKind.type;
