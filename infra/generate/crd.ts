// The CustomResourceDefinition of a served kind, from its description in shared/api.
import type { GeneratedManifest } from './manifest.ts';
import type { PrinterColumn, ServedKind } from '#shared/api/kind.ts';
import { type StructuralSchema, toStructuralSchema } from '#shared/api/structural-schema.ts';

/** `kubectl get bullion` lists every kind. */
const ownCategory = 'bullion';

export const buildCrd = (kind: ServedKind): GeneratedManifest => {
  const { type } = kind;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${type.plural}.${type.group}`, labels: { 'app.kubernetes.io/part-of': 'bullion' } },
    spec: {
      group: type.group,
      names: {
        kind: type.kind,
        listKind: `${type.kind}List`,
        plural: type.plural,
        singular: kind.singular,
        ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
        categories: [ownCategory, ...kind.categories],
      },
      scope: type.namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: type.version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: kind.columns.map(toColumn),
          schema: { openAPIV3Schema: described(objectSchema(kind)) },
        },
      ],
    },
  };
};

/** Kubernetes describes the metadata of an object itself, and does not permit another description. */
const isTheirs = (name: string, parent: string): boolean => name === 'metadata' && parent === '';

/** Adds common descriptions to fields without their own. `parent`: the field with the schema. */
const described = (schema: StructuralSchema, parent = ''): StructuralSchema => ({
  ...schema,
  ...(schema.properties === undefined ? {} : { properties: describedFields(schema.properties, parent) }),
  ...(schema.items === undefined ? {} : { items: described(schema.items, parent) }),
  ...(schema.additionalProperties === undefined
    ? {}
    : { additionalProperties: described(schema.additionalProperties, parent) }),
});

const describedFields = (
  fields: NonNullable<StructuralSchema['properties']>,
  parent: string,
): NonNullable<StructuralSchema['properties']> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const known = isTheirs(name, parent) ? undefined : descriptionOf(name, parent);
      return [name, described(known === undefined ? field : { description: known, ...field }, name)];
    }),
  );

const descriptionOf = (name: string, parent: string): string | undefined =>
  fieldDescriptions[`${parent}.${name}`] ?? fieldDescriptions[name];

const toColumn = ({
  name,
  type,
  jsonPath,
  description,
  priority,
}: PrinterColumn): Readonly<Record<string, unknown>> => ({
  name,
  type,
  jsonPath,
  ...(description === undefined ? {} : { description }),
  ...(priority === undefined || priority === 0 ? {} : { priority }),
});

const objectSchema = (kind: ServedKind): StructuralSchema => ({
  type: 'object',
  description: kind.description,
  required: ['spec'],
  properties: {
    apiVersion: { type: 'string', description: 'The version of the schema this object is written in.' },
    kind: { type: 'string', description: 'The kind of this object, in CamelCase.' },
    metadata: { type: 'object' },
    spec: { description: 'The desired state.', ...toStructuralSchema(kind.spec) },
    status: { description: 'The observed state.', ...toStructuralSchema(kind.status) },
  },
});

// Descriptions of fields with the same meaning everywhere, for `kubectl explain`. A schema in shared/api describes its specific fields; crd.ts
// takes the others from here, by the name of a field and, if a name has several meanings, of its parent.

/** By `field`, or `parent.field`, which takes precedence. */
export const fieldDescriptions: Readonly<Record<string, string>> = {
  // Conditions.
  conditions: 'the latest observations, one of each type',
  'conditions.type': 'what is observed, such as Ready',
  'conditions.status': 'True, False or Unknown',
  'conditions.reason': 'why it is so, in one CamelCase word',
  'conditions.observedGeneration': 'metadata.generation that this was observed of',
  lastTransitionTime: 'when its status changed last',
  lastHeartbeatTime: 'when its status or its reason changed last',
  lastUpdateTime: 'when anything of it changed last',

  // Sources.
  source: 'where the content comes from: exactly one of the fields',
  http: 'a file on a web server',
  registry: 'a disk in an OCI image (containerDisk)',
  s3: 'an object of a store that speaks S3',
  gcs: 'a public object of Google Cloud Storage',
  imageio: 'a disk of oVirt; refused with a message',
  vddk: 'a disk of VMware; refused with a message',
  upload: 'a file that a client sends',
  'source.pvc': 'a volume to clone',
  url: 'address of the source',
  secretRef: 'Secret with the credentials of the server, in the namespace of this object',
  certConfigMap: 'ConfigMap with the certificates of authorities to trust, in the namespace of this object',
  extraHeaders: 'headers of each request for the file, as `name: value`',
  secretExtraHeaders: 'Secrets that hold more such headers',
  insecureSkipVerify: 'whether certificates are not checked; refused with a message',
  imageStream: 'an image stream of OpenShift; refused with a message',
  pullMethod: 'pod or node; the worker pulls the image in either case',
  platform: 'which image of an index is taken',
  architecture: 'architecture of the image, as registries name it; default: that of the worker',
  diskId: 'ID of the disk',
  uuid: 'UUID of the virtual machine',
  backingFile: 'path of the disk of the virtual machine',
  thumbprint: 'fingerprint of the certificate of the server',
  initImageURL: 'image that holds the VDDK library',
  extraArgs: 'ConfigMap with more arguments',
  objectName: 'key of the object',
  bucketName: 'name of the bucket',
  'hostPath.path': 'path of the file on the node',
  nodeName: 'node that has the file',
  sourceImageName: 'name of the image to copy',
  sourceImageNamespace: 'namespace of that image',

  // References.
  namespace: 'namespace of the object; default: that of this object',
  name: 'name of the object',
  kind: 'kind of the object',
  apiGroup: 'API group of the object; default: the core group',

  // Claims.
  accessModes: 'how nodes may mount the volume; default: those of the storage profile, if `storage` is used',
  volumeMode: 'Block for a raw device, Filesystem for a disk.img in a file system',
  storageClassName: 'storage class of the volume; default: the default class',
  volumeName: 'PersistentVolume to bind',
  selector: 'labels of PersistentVolumes to consider',
  dataSource: 'object that the storage driver fills the volume from',
  dataSourceRef: 'object that the storage driver or a populator fills the volume from',
  resources: 'resources of the volume',
  requests: 'the least that is needed; storage is its size',
  limits: 'the most that is allowed',
  volumeAttributesClassName: 'VolumeAttributesClass of the volume',
  contentType: 'kubevirt for a disk, archive for the files of a tar archive; default: kubevirt',
  preallocation: 'whether all space of the disk is allocated in advance',
  priorityClassName: 'priority class of the pods that fill the volume',
  serviceAccountName: 'service account of the pods that fill the volume',
  checkpoints: 'steps of a warm import; refused with a message',
  previous: 'snapshot of the step before',
  current: 'snapshot of this step',
  finalCheckpoint: 'whether no more steps follow',

  // Templates of crons.
  'template.metadata': 'labels and annotations of the DataVolumes that are created',
  'template.spec': 'spec of the DataVolumes that are created',
  labels: 'labels of the DataVolumes that are created',
  annotations: 'annotations of the DataVolumes that are created',
  createdBy: 'who created this object',
  DataVolumeName: 'DataVolume of the import',
  Digest: 'digest of what is imported',
  lastImportTimestamp: 'when an import succeeded last',
  outcome: 'how it ended',
  etag: 'ETag that the server gave',
  lastModified: 'Last-Modified that the server gave',

  // Status.
  phase: 'what happens now',
  claimName: 'claim that holds the data',
  'lastFailure.reason': 'why the last attempt failed, in one CamelCase word',
  'lastFailure.message': 'why the last attempt failed, in a sentence',
  reason: 'why it is so, in one CamelCase word',
  message: 'why it is so, in a sentence',
  'children.volume': 'the claim with the data',
  'children.snapshot': 'the VolumeSnapshot that clones are made from',
  'children.job': 'the Job that moves the bytes',
  'children.backingImage': "Longhorn's BackingImage",
  'children.storageClass': 'the storage class that volumes are made with',
  'transfer.phase': 'what the worker does now',
  startedAt: 'when the pod began; orders pods',
  sequence: 'number of the report within its pod; orders reports',
  percent: 'percent of the whole that are done',
  receivedBytes: 'bytes received from the source',
  totalBytes: 'size of the file in bytes, if its server reports it',
  bytesPerSecond: 'bytes received each second, at present',
  etaSeconds: 'seconds that are left, at this speed',
  provisioner: 'provisioner of the storage class',
  storageClass: 'storage class that this is about',
  'backupTarget.endpoint': 'URL of the backup target',
  'backupTarget.bucketName': 'bucket of the backup target',
  bucketRegion: 'region of that bucket',
  'storage.checksum': 'checksum that the storage gives of it',
  bucket: 'bucket of the object',
  key: 'key of the object',
  versionId: 'version of the object, where the bucket keeps versions',
};
