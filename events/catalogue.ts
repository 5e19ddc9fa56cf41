// Every event type that the product accepts or sends, with the schema of its data. An unknown type is rejected.
import { z } from 'zod';
import type { CloudEvent } from '#events/event.ts';
import type { KubeObject, ObjectRef } from '#shared/api/object.ts';
import { Observation } from '#shared/golden/poll/observation.ts';
import { TransferProgress } from '#shared/transfer/report.ts';

/** The whole object, as ApiServerSource sends it in Resource mode. Unknown fields are preserved. */
const ObjectData = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional(), uid: z.string().optional() }),
});

/** A reference to an object, as ApiServerSource sends it in Reference mode, without UID and version. */
const ReferenceData = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
});

/** Identifies one object: another one created later under the same name has a different UID. */
export const ObjectRefData = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  uid: z.string(),
});

/** PingSource sends the data in its manifest; a job is named where one source triggers one of several. */
const PingData = z.union([z.looseObject({ job: z.string().optional() }), z.string()]).optional();

export const TransferProgressedData = z.object({ owner: ObjectRefData, progress: TransferProgress });
export const ImageReadyData = z.object({ image: ObjectRefData, generation: z.number().int() });
export const ImageFailedData = ImageReadyData.extend({
  /** CamelCase, stable; the same as on the image's conditions. */
  reason: z.string(),
  message: z.string(),
});

/** The result of a poll of a cron's source. */
export const SourcePolledData = z.object({ cron: ObjectRefData, observation: Observation });

/** What happened to one version of a golden image. */
export const VersionData = z.object({
  cron: ObjectRefData,
  /** Name of its volume or snapshot. */
  version: z.string(),
  digest: z.string().optional(),
  /** CamelCase, stable; the same as on the cron's conditions and Events. */
  reason: z.string(),
  message: z.string(),
});

/** What happened to a version under a policy: a channel changed to it, it was marked as bad, or it is deprecated. */
export const PolicyVersionData = z.object({
  policy: ObjectRefData,
  /** Unset when every channel is meant. */
  channel: z.string().optional(),
  /** Name of its volume or snapshot. */
  version: z.string(),
  /** CamelCase, stable; the same as on the policy's Events. */
  reason: z.string(),
  /** What happened, who caused it and why. */
  message: z.string(),
});

/** What happened to the backup of an image, or that the image was restored from one. */
export const BackupData = z.object({
  image: ObjectRefData,
  /** CamelCase, stable; the same as on the image's Events. */
  reason: z.string(),
  message: z.string(),
});

/** An object of a store that was created, replaced or deleted: its current state is read from the store. */
export const StoredObjectData = z.object({ bucket: z.string().min(1), key: z.string().min(1) });

export const eventTypes = {
  objectAdded: 'dev.knative.apiserver.resource.add',
  objectUpdated: 'dev.knative.apiserver.resource.update',
  objectDeleted: 'dev.knative.apiserver.resource.delete',
  referenceAdded: 'dev.knative.apiserver.ref.add',
  referenceUpdated: 'dev.knative.apiserver.ref.update',
  referenceDeleted: 'dev.knative.apiserver.ref.delete',
  ping: 'dev.knative.sources.ping',
  transferProgressed: 'dev.bullion.transfer.progressed',
  imageReady: 'dev.bullion.image.ready',
  imageFailed: 'dev.bullion.image.failed',
  sourcePolled: 'dev.bullion.source.polled',
  versionImported: 'dev.bullion.version.imported',
  versionFailed: 'dev.bullion.version.failed',
  versionSuperseded: 'dev.bullion.version.superseded',
  versionCollected: 'dev.bullion.version.collected',
  versionPromoted: 'dev.bullion.version.promoted',
  versionPinned: 'dev.bullion.version.pinned',
  versionRolledBack: 'dev.bullion.version.rolledback',
  versionMarkedBad: 'dev.bullion.version.markedbad',
  versionDeprecated: 'dev.bullion.version.deprecated',
  backupCompleted: 'dev.bullion.backup.completed',
  backupFailed: 'dev.bullion.backup.failed',
  backupRestored: 'dev.bullion.backup.restored',
  storedObjectChanged: 'dev.bullion.object.changed',
} as const;

export type EventType = (typeof eventTypes)[keyof typeof eventTypes];

export const catalogue = {
  [eventTypes.objectAdded]: ObjectData,
  [eventTypes.objectUpdated]: ObjectData,
  [eventTypes.objectDeleted]: ObjectData,
  [eventTypes.referenceAdded]: ReferenceData,
  [eventTypes.referenceUpdated]: ReferenceData,
  [eventTypes.referenceDeleted]: ReferenceData,
  [eventTypes.ping]: PingData,
  [eventTypes.transferProgressed]: TransferProgressedData,
  [eventTypes.imageReady]: ImageReadyData,
  [eventTypes.imageFailed]: ImageFailedData,
  [eventTypes.sourcePolled]: SourcePolledData,
  [eventTypes.versionImported]: VersionData,
  [eventTypes.versionFailed]: VersionData,
  [eventTypes.versionSuperseded]: VersionData,
  [eventTypes.versionCollected]: VersionData,
  [eventTypes.versionPromoted]: PolicyVersionData,
  [eventTypes.versionPinned]: PolicyVersionData,
  [eventTypes.versionRolledBack]: PolicyVersionData,
  [eventTypes.versionMarkedBad]: PolicyVersionData,
  [eventTypes.versionDeprecated]: PolicyVersionData,
  [eventTypes.backupCompleted]: BackupData,
  [eventTypes.backupFailed]: BackupData,
  [eventTypes.backupRestored]: BackupData,
  [eventTypes.storedObjectChanged]: StoredObjectData,
} as const satisfies Record<EventType, z.ZodType>;

/** An event of a catalogued type with validated data. */
export type EventOf<T extends EventType> = CloudEvent<z.infer<(typeof catalogue)[T]>, T>;
/** Any catalogued event; switch on `type` to narrow `data`. */
export type KnownEvent = { [T in EventType]: EventOf<T> }[EventType];

export const isKnownType = (type: string): type is EventType => Object.hasOwn(catalogue, type);

/** The Kubernetes object that an event is about; undefined for a ping and for objects of stores. In Reference mode the UID is unknown. */
export const objectOf = (event: KnownEvent): (Omit<ObjectRef, 'uid'> & { readonly uid?: string }) | undefined => {
  switch (event.type) {
    case eventTypes.ping:
    case eventTypes.storedObjectChanged:
      return undefined;
    case eventTypes.objectAdded:
    case eventTypes.objectUpdated:
    case eventTypes.objectDeleted:
      return event.data && referenceOf(event.data as KubeObject);
    case eventTypes.referenceAdded:
    case eventTypes.referenceUpdated:
    case eventTypes.referenceDeleted:
      return event.data && withNamespace(event.data);
    default:
      return aboutOf(event);
  }
};

type OwnEvent = EventOf<Exclude<Extract<EventType, `dev.bullion.${string}`>, typeof eventTypes.storedObjectChanged>>;

/** Events of the product contain the complete reference of their object. */
const aboutOf = (event: OwnEvent): z.infer<typeof ObjectRefData> | undefined => {
  const { data } = event;
  if (data === undefined) return undefined;
  if ('owner' in data) return data.owner;
  if ('policy' in data) return data.policy;
  return 'image' in data ? data.image : data.cron;
};

const referenceOf = ({ apiVersion, kind, metadata }: KubeObject) => ({
  ...withNamespace({ apiVersion, kind, name: metadata.name, namespace: metadata.namespace }),
  ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
});

/** Cluster-scoped objects have no namespace, or an empty one on the wire. */
const withNamespace = <R extends { readonly namespace?: string | undefined }>(reference: R): R => {
  const { namespace, ...rest } = reference;
  return (namespace === undefined || namespace === '' ? rest : { ...rest, namespace }) as R;
};
