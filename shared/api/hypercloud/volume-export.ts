// hypercloud.tmaxanc.com VirtualMachineVolumeExport: a disk as a qcow2 file, in an object store or a claim. In the short form of the design and
// the released form of the operator.
import { z } from 'zod';
import { imageStatusShape } from '#shared/api/image-status.ts';
import { ObjectName, Int64, type ServedKind, exactlyOne, withRules } from '#shared/api/kind.ts';
import type { KubeObject } from '#shared/api/object.ts';

const destinations = {
  local: z
    .object({})
    .optional()
    .describe('a claim `<name>-export-pvc` that holds `disk.img`, shown by a pod `<name>-exporter-local`'),
  s3: z
    .object({
      url: z
        .string()
        .describe(
          '`https://bucket.store/key`, or `https://store/bucket/key` where the host is an address, begins with `s3.`, or is that of Google or of an account in Azure',
        ),
      secretRef: ObjectName.optional().describe(
        'a Secret of the same namespace with the credentials: accessKeyId and secretKey, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; credentials.json for Google, sasToken for Azure',
      ),
      certConfigMap: ObjectName.optional().describe(
        'a ConfigMap of the same namespace with certificate authorities of the store, in PEM form',
      ),
      workloadIdentity: z
        .string()
        .optional()
        .describe('in place of secretRef: the identity of the service account in the cloud that has the store'),
    })
    .optional()
    .describe('an object in a store of your own'),
  registry: z
    .object({
      url: z
        .string()
        .describe(
          '`docker://host[:port]/repository:tag`: the disk becomes a containerDisk under a tag that is not taken',
        ),
      secretRef: ObjectName.optional().describe(
        'a Secret of the same namespace that may push: of the type kubernetes.io/dockerconfigjson, or with username and password',
      ),
      certConfigMap: ObjectName.optional().describe(
        'a ConfigMap of the same namespace with certificate authorities of the registry, in PEM form',
      ),
      signingSecretRef: ObjectName.optional().describe(
        'a Secret of the same namespace with a private key in PEM form, and its passphrase in `password`, that signs the image as cosign does',
      ),
      compression: z
        .enum(['none', 'zlib', 'zstd'])
        .optional()
        .describe('of the data in the qcow2 file, which nodes read as it is; default: none'),
    })
    .optional()
    .describe('an image in a registry'),
};

const Destination = z
  .object(destinations)
  .describe('exactly one of the fields')
  .meta(
    withRules({
      rule: exactlyOne(...Object.keys(destinations)),
      message: 'exactly one of local, s3 and registry must be set',
    }),
  );

const VirtualMachineVolumeExportSpec = z
  .object({
    pvcName: ObjectName.min(1).optional().describe('a claim of the same namespace'),
    virtualMachineVolume: z
      .object({ name: ObjectName.min(1) })
      .optional()
      .describe('a volume of the same namespace'),
    objectStore: z
      .object({ bucketName: z.string(), objectName: z.string() })
      .optional()
      .describe('an object in the object store this installation is configured with'),
    destination: Destination.optional(),
  })
  .describe('what is exported, and where to')
  .meta(
    withRules(
      {
        rule: exactlyOne('pvcName', 'virtualMachineVolume'),
        message: 'exactly one of pvcName and virtualMachineVolume must be set',
      },
      {
        rule: exactlyOne('objectStore', 'destination'),
        message: 'exactly one of objectStore and destination must be set',
      },
      { rule: 'self == oldSelf', message: 'spec cannot be changed: create a new export instead' },
    ),
  );

export const ExportStatus = z.object({
  state: z.enum(['Pending', 'Creating', 'Completed', 'Error']).optional().describe('the original summary'),
  phase: z.string().optional().describe('what happens now, finer than state'),
  from: z
    .enum(['snapshot', 'claim'])
    .optional()
    .describe('what is read: a snapshot of the disk, or a disk that nobody writes to'),
  object: z
    .object({
      url: z.string().describe('where the object is, without credentials'),
      bucket: z.string(),
      key: z.string(),
      size: Int64.optional().describe('bytes'),
      etag: z.string().optional(),
      versionId: z.string().optional(),
      isConfirmed: z.boolean().optional().describe('the store computed the same CRC-32 of the whole object'),
    })
    .optional()
    .describe('what was made in the object store; present once it is complete'),
  image: z
    .object({
      reference: z.string().describe('names exactly this image: `docker://host/repository@digest`'),
      digest: z.string().describe('of its manifest'),
      size: Int64.describe('bytes of its layer'),
    })
    .optional()
    .describe('what was pushed to the registry'),
  claimName: z.string().optional().describe('the claim that holds disk.img, of a local export'),
  podName: z.string().optional().describe('the pod to fetch it from, by the command that the Ready message names'),
  failing: z
    .object({ reason: z.string(), message: z.string() })
    .optional()
    .describe('why it fails, while what it began in the store is removed'),
  ...imageStatusShape,
});
export type ExportStatus = z.infer<typeof ExportStatus>;

export interface VirtualMachineVolumeExport extends KubeObject {
  readonly spec: z.infer<typeof VirtualMachineVolumeExportSpec>;
  readonly status?: ExportStatus;
}

export const volumeExportKind: ServedKind<VirtualMachineVolumeExport> = {
  type: {
    group: 'hypercloud.tmaxanc.com',
    version: 'v1alpha1',
    namespaced: true,
    kind: 'VirtualMachineVolumeExport',
    plural: 'virtualmachinevolumeexports',
  },
  singular: 'virtualmachinevolumeexport',
  shortNames: ['vmve'],
  categories: [],
  description: 'A copy of a disk as a qcow2 file: an object in a store, or a file in a claim of its own.',
  spec: VirtualMachineVolumeExportSpec,
  status: ExportStatus,
  columns: [
    {
      name: 'State',
      type: 'string',
      jsonPath: '.status.state',
      description: 'Current state of VirtualMachineVolumeExport',
    },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Progress', type: 'integer', jsonPath: '.status.progress' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Object', type: 'string', jsonPath: '.status.object.url', priority: 1 },
    { name: 'Size', type: 'integer', jsonPath: '.status.size', priority: 1 },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
