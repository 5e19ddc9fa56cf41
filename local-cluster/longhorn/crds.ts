// The kinds of longhorn.io as served by the local cluster: fields that our backend writes, and that the simulation reports. A cluster with
// Longhorn has its own.
import type { CustomResourceDefinition } from '#local-cluster/controllers/snapshots/crds.ts';
import { backupBackingImages } from '#shared/api/foreign/backup.ts';
import { backingImageDataSources, backingImages } from '#shared/api/foreign/longhorn.ts';
import type { ResourceType } from '#shared/api/object.ts';

type Schema = Readonly<Record<string, unknown>>;

const text: Schema = { type: 'string' };
const whole: Schema = { type: 'integer' };
const long: Schema = { type: 'integer', format: 'int64' };
const flag: Schema = { type: 'boolean' };
const texts: Schema = { type: 'object', additionalProperties: text };
const list: Schema = { type: 'array', items: text };
const engine: Schema = { type: 'string', enum: ['v1', 'v2'] };
const sourceType: Schema = {
  type: 'string',
  enum: ['download', 'upload', 'export-from-volume', 'restore', 'clone'],
};
const record = (properties: Readonly<Record<string, Schema>>): Schema => ({ type: 'object', properties });
const nullable = (schema: Schema): Schema => ({ ...schema, nullable: true });

const copy = record({
  state: text,
  progress: whole,
  message: text,
  lastStateTransitionTime: text,
  dataEngine: engine,
});

interface Description {
  readonly type: ResourceType;
  readonly shortNames: readonly string[];
  readonly spec: Schema;
  readonly status: Schema;
  readonly columns: Readonly<Record<string, string>>;
}

const build = ({ type, shortNames, spec, status, columns }: Description): CustomResourceDefinition => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${type.plural}.${type.group}` },
  spec: {
    group: type.group,
    scope: 'Namespaced',
    names: {
      kind: type.kind,
      listKind: `${type.kind}List`,
      plural: type.plural,
      singular: type.kind.toLowerCase(),
      shortNames,
    },
    versions: [
      {
        name: type.version,
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: record({ apiVersion: text, kind: text, metadata: { type: 'object' }, spec, status }),
        },
        subresources: { status: {} },
        additionalPrinterColumns: Object.entries(columns).map(([name, jsonPath]) => ({
          name,
          type: name === 'Age' ? 'date' : 'string',
          jsonPath,
        })),
      },
    ],
  },
});

export const longhornCrds: readonly CustomResourceDefinition[] = [
  build({
    type: backingImages,
    shortNames: ['lhbi'],
    spec: record({
      checksum: text,
      dataEngine: { ...engine, default: 'v1' },
      diskFileSpecMap: {
        type: 'object',
        additionalProperties: record({ dataEngine: engine, evictionRequested: flag }),
      },
      diskSelector: list,
      disks: texts,
      minNumberOfCopies: whole,
      nodeSelector: list,
      secret: text,
      secretNamespace: text,
      sourceParameters: texts,
      sourceType,
    }),
    status: record({
      checksum: text,
      diskFileStatusMap: nullable({ type: 'object', additionalProperties: copy }),
      diskLastRefAtMap: nullable(texts),
      ownerID: text,
      realSize: long,
      size: long,
      uuid: text,
      v2FirstCopyDisk: text,
      v2FirstCopyStatus: text,
      virtualSize: long,
    }),
    columns: {
      UUID: '.status.uuid',
      SourceType: '.spec.sourceType',
      Size: '.status.size',
      VirtualSize: '.status.virtualSize',
      Age: '.metadata.creationTimestamp',
    },
  }),
  build({
    type: backingImageDataSources,
    shortNames: ['lhbids'],
    spec: record({
      checksum: text,
      diskPath: text,
      diskUUID: text,
      fileTransferred: flag,
      nodeID: text,
      parameters: texts,
      sourceType,
      uuid: text,
    }),
    status: record({
      checksum: text,
      currentState: text,
      ip: text,
      message: text,
      ownerID: text,
      progress: whole,
      runningParameters: nullable(texts),
      size: long,
      storageIP: text,
    }),
    columns: {
      UUID: '.spec.uuid',
      State: '.status.currentState',
      SourceType: '.spec.sourceType',
      Size: '.status.size',
      Node: '.spec.nodeID',
      DiskUUID: '.spec.diskUUID',
      Age: '.metadata.creationTimestamp',
    },
  }),
  build({
    type: backupBackingImages,
    shortNames: ['lhbbi'],
    spec: record({
      backingImage: text,
      backupTargetName: text,
      labels: texts,
      syncRequestedAt: text,
      userCreated: flag,
    }),
    status: record({
      backingImage: text,
      backupCreatedAt: text,
      checksum: text,
      compressionMethod: text,
      error: text,
      labels: nullable(texts),
      lastSyncedAt: nullable(text),
      managerAddress: text,
      messages: nullable(texts),
      ownerID: text,
      progress: whole,
      secret: text,
      secretNamespace: text,
      size: long,
      state: text,
      url: text,
    }),
    columns: {
      BackingImage: '.status.backingImage',
      Size: '.status.size',
      State: '.status.state',
      Age: '.metadata.creationTimestamp',
    },
  }),
];
