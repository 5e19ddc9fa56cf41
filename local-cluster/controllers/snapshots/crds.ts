// The three kinds of snapshot.storage.k8s.io in the local cluster: the fields that users set and that our controller writes.
// A cluster with a snapshot controller has CRDs of its own.
import type { KubeObject } from '#shared/api/object.ts';

/** A CustomResourceDefinition; `spec` is passed through to the API server. */
export interface CustomResourceDefinition extends KubeObject {
  readonly spec: Readonly<Record<string, unknown>>;
}

type Schema = Readonly<Record<string, unknown>>;

const group = 'snapshot.storage.k8s.io';
const text: Schema = { type: 'string' };
const flag: Schema = { type: 'boolean' };
const time: Schema = { type: 'string', format: 'date-time' };
const whole: Schema = { type: 'integer', format: 'int64' };
const texts: Schema = { type: 'object', additionalProperties: text };
const policy: Schema = { type: 'string', enum: ['Delete', 'Retain'] };
const quantity: Schema = { type: 'string' };

const record = (properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema => ({
  type: 'object',
  properties,
  ...(required.length === 0 ? {} : { required }),
});

/** Exactly one of two ways to specify the source of a snapshot, immutable once set. */
const eitherOf = (first: string, second: string): Schema => ({
  ...record({ [first]: text, [second]: text }),
  'x-kubernetes-validations': [
    { rule: `has(self.${first}) != has(self.${second})`, message: `set exactly one of ${first} and ${second}` },
    { rule: 'self == oldSelf', message: 'the source cannot be changed' },
  ],
});

const failure = record({ message: text, time });

interface Description {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly scope: 'Namespaced' | 'Cluster';
  readonly properties: Readonly<Record<string, Schema>>;
  readonly required: readonly string[];
  readonly columns: Readonly<Record<string, string>>;
  readonly hasStatus: boolean;
}

const column = ([name, path]: [string, string]): Schema => {
  const type = name === 'Age' ? 'date' : name === 'ReadyToUse' ? 'boolean' : 'string';
  return { name, type, jsonPath: path };
};

const build = (about: Description): CustomResourceDefinition => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: `${about.plural}.${group}`,
    // Groups under k8s.io are rejected without an annotation about their approval; this one is served for local use only.
    annotations: { 'api-approved.kubernetes.io': 'unapproved, served by a local cluster' },
  },
  spec: {
    group,
    scope: about.scope,
    names: {
      kind: about.kind,
      listKind: `${about.kind}List`,
      plural: about.plural,
      singular: about.kind.toLowerCase(),
      shortNames: about.shortNames,
    },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: record(
            { apiVersion: text, kind: text, metadata: { type: 'object' }, ...about.properties },
            about.required,
          ),
        },
        ...(about.hasStatus ? { subresources: { status: {} } } : {}),
        additionalPrinterColumns: Object.entries(about.columns).map(column),
      },
    ],
  },
});

const age = { Age: '.metadata.creationTimestamp' };

export const snapshotCrds: readonly CustomResourceDefinition[] = [
  build({
    kind: 'VolumeSnapshotClass',
    plural: 'volumesnapshotclasses',
    shortNames: ['vsclass', 'vsclasses'],
    scope: 'Cluster',
    properties: { driver: text, deletionPolicy: policy, parameters: texts },
    required: ['driver', 'deletionPolicy'],
    columns: { Driver: '.driver', DeletionPolicy: '.deletionPolicy', ...age },
    hasStatus: false,
  }),
  build({
    kind: 'VolumeSnapshot',
    plural: 'volumesnapshots',
    shortNames: ['vs'],
    scope: 'Namespaced',
    properties: {
      spec: record(
        {
          source: eitherOf('persistentVolumeClaimName', 'volumeSnapshotContentName'),
          volumeSnapshotClassName: { ...text, minLength: 1 },
        },
        ['source'],
      ),
      status: record({
        boundVolumeSnapshotContentName: text,
        creationTime: time,
        readyToUse: flag,
        restoreSize: quantity,
        error: failure,
        volumeGroupSnapshotName: text,
      }),
    },
    required: ['spec'],
    columns: {
      ReadyToUse: '.status.readyToUse',
      SourcePVC: '.spec.source.persistentVolumeClaimName',
      SourceSnapshotContent: '.spec.source.volumeSnapshotContentName',
      RestoreSize: '.status.restoreSize',
      SnapshotClass: '.spec.volumeSnapshotClassName',
      SnapshotContent: '.status.boundVolumeSnapshotContentName',
      ...age,
    },
    hasStatus: true,
  }),
  build({
    kind: 'VolumeSnapshotContent',
    plural: 'volumesnapshotcontents',
    shortNames: ['vsc', 'vscs'],
    scope: 'Cluster',
    properties: {
      spec: record(
        {
          deletionPolicy: policy,
          driver: text,
          source: eitherOf('volumeHandle', 'snapshotHandle'),
          sourceVolumeMode: text,
          volumeSnapshotClassName: text,
          volumeSnapshotRef: record({
            apiVersion: text,
            kind: text,
            namespace: text,
            name: text,
            uid: text,
            resourceVersion: text,
            fieldPath: text,
          }),
        },
        ['deletionPolicy', 'driver', 'source', 'volumeSnapshotRef'],
      ),
      status: record({
        creationTime: whole,
        readyToUse: flag,
        restoreSize: { ...whole, minimum: 0 },
        snapshotHandle: text,
        error: failure,
        volumeGroupSnapshotHandle: text,
      }),
    },
    required: ['spec'],
    columns: {
      ReadyToUse: '.status.readyToUse',
      RestoreSize: '.status.restoreSize',
      DeletionPolicy: '.spec.deletionPolicy',
      Driver: '.spec.driver',
      VolumeSnapshotClass: '.spec.volumeSnapshotClassName',
      VolumeSnapshot: '.spec.volumeSnapshotRef.name',
      VolumeSnapshotNamespace: '.spec.volumeSnapshotRef.namespace',
      ...age,
    },
    hasStatus: true,
  }),
];
