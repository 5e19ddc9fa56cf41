// hypercloud.tmaxanc.com VirtualMachineImage, in the short form of its design and the released form of its operator.
import { z } from 'zod';
import { BackupStatus, imageStatusShape } from '#shared/api/image-status.ts';
import { ObjectName, exactlyOne, fixedField, QuantityValue, type ServedKind, withRules } from '#shared/api/kind.ts';
import type { KubeObject } from '#shared/api/object.ts';

const sources = {
  http: z.string().optional().describe('http or https URL of the image file'),
  objectStore: z
    .object({ bucketName: z.string(), objectName: z.string() })
    .optional()
    .describe('an object in the object store this installation is configured with'),
  hostPath: z
    .object({ path: z.string(), nodeName: ObjectName })
    .optional()
    .describe('a file on a node; accepted by the schema, refused by admission'),
};
/** Exactly one of them is set. */
export const hyperCloudSources = Object.keys(sources) as readonly (keyof typeof sources)[];

const access = {
  secretRef: ObjectName.optional().describe('a Secret of the same namespace with the credentials of http'),
  certConfigMap: ObjectName.optional().describe(
    'a ConfigMap of the same namespace with certificate authorities of http, in PEM form',
  ),
  workloadIdentity: z
    .string()
    .optional()
    .describe('in place of secretRef: the identity of the service account in the cloud that has http'),
};

export const HyperCloudImageSource = z
  .object({ ...sources, ...access })
  .describe('where the image comes from: exactly one of http, objectStore and hostPath')
  .meta(
    withRules(
      {
        rule: exactlyOne(...hyperCloudSources),
        message: 'exactly one source must be set',
      },
      { rule: 'self == oldSelf', message: 'source cannot be changed: create a new image instead' },
    ),
  );

export const HyperCloudVolumeSpec = z
  .object({
    accessModes: z
      .array(z.enum(['ReadWriteOnce', 'ReadWriteMany', 'ReadOnlyMany', 'ReadWriteOncePod']))
      .optional()
      .describe('default: the modes that the storage class supports'),
    volumeMode: z.enum(['Block', 'Filesystem']).optional().describe('default: Block'),
    storageClassName: ObjectName.optional().describe('used if spec.storageClassName is omitted'),
    volumeName: ObjectName.optional().describe('refused by admission: the volume is a new one'),
    selector: z.looseObject({}).optional().describe('refused by admission: the volume is a new one'),
    dataSource: z.looseObject({}).optional().describe('refused by admission: the volume is filled from source'),
    resources: z
      .object({
        requests: z.record(z.string(), QuantityValue).optional(),
        limits: z.record(z.string(), QuantityValue).optional(),
      })
      .optional()
      .describe('requests.storage is the size of the volume; default: the size of the disk in the image'),
  })
  .describe('claim of the golden volume, as the released operator had it');

export const HyperCloudImageSpec = z
  .object({
    source: HyperCloudImageSource,
    storageClassName: ObjectName.optional().describe(
      'default: the class of pvc, else the default class of the cluster',
    ),
    pvc: HyperCloudVolumeSpec.optional(),
    snapshotClassName: ObjectName.optional().describe(
      'default: the snapshot class of the driver, if any; without one no snapshot is made',
    ),
    backup: z.boolean().optional().describe('keep the image in the backup target of the cluster'),
    checksum: z
      .string()
      .optional()
      .describe('<algorithm>:<hex> over the file as published; md5, sha1, sha256 or sha512'),
  })
  .meta(
    withRules(
      fixedField('checksum'),
      fixedField('storageClassName'),
      fixedField('snapshotClassName'),
      fixedField('pvc'),
    ),
  );
export type HyperCloudImageSpec = z.infer<typeof HyperCloudImageSpec>;

export const HyperCloudImageStatus = z.object({
  state: z.enum(['Creating', 'Available', 'Error']).optional().describe('the original summary'),
  phase: z.string().optional().describe('what happens now, finer than state'),
  backup: BackupStatus.optional(),
  ...imageStatusShape,
});
export type HyperCloudImageStatus = z.infer<typeof HyperCloudImageStatus>;

export interface HyperCloudImage extends KubeObject {
  readonly spec: HyperCloudImageSpec;
  readonly status?: HyperCloudImageStatus;
}

export const hyperCloudImageKind: ServedKind<HyperCloudImage> = {
  type: {
    group: 'hypercloud.tmaxanc.com',
    version: 'v1alpha1',
    kind: 'VirtualMachineImage',
    plural: 'virtualmachineimages',
    namespaced: true,
  },
  singular: 'virtualmachineimage',
  shortNames: ['vmim'],
  categories: [],
  description: 'A golden image: a disk fetched from a source into a volume that virtual machine volumes are made from.',
  spec: HyperCloudImageSpec,
  status: HyperCloudImageStatus,
  columns: [
    { name: 'State', type: 'string', jsonPath: '.status.state', description: 'Current state of VirtualMachineImage' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Progress', type: 'integer', jsonPath: '.status.progress' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Size', type: 'integer', jsonPath: '.status.size', priority: 1 },
    { name: 'VirtualSize', type: 'integer', jsonPath: '.status.virtualSize', priority: 1 },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
