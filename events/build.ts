// The events that the product sends about its objects. Ids contain the UID of the owner, the generation and the transition, so that duplicates are recognized.
import type { z } from 'zod';
import {
  type BackupData,
  type EventOf,
  type EventType,
  type ImageFailedData,
  type ImageReadyData,
  type PolicyVersionData,
  type SourcePolledData,
  type StoredObjectData,
  type TransferProgressedData,
  type VersionData,
  eventTypes,
} from '#events/catalogue.ts';
import type { ObjectRef, ResourceType } from '#shared/api/object.ts';

/** The sender: a URI reference such as `bullion.dev/transfer-job`. */
interface Origin {
  readonly source: string;
  readonly now?: Date;
}

export const buildTransferProgressed = (
  data: z.infer<typeof TransferProgressedData>,
  origin: Origin,
): EventOf<typeof eventTypes.transferProgressed> => {
  const { run, sequence } = data.progress;
  return about(eventTypes.transferProgressed, data.owner, { id: `${data.owner.uid}.${run}.${sequence}`, data, origin });
};

export const buildImageReady = (
  data: z.infer<typeof ImageReadyData>,
  origin: Origin,
): EventOf<typeof eventTypes.imageReady> =>
  about(eventTypes.imageReady, data.image, { id: `${data.image.uid}.${data.generation}.ready`, data, origin });

/** `attempt` distinguishes the failures of one generation. */
export const buildImageFailed = (
  data: z.infer<typeof ImageFailedData>,
  attempt: number,
  origin: Origin,
): EventOf<typeof eventTypes.imageFailed> =>
  about(eventTypes.imageFailed, data.image, {
    id: `${data.image.uid}.${data.generation}.failed.${attempt}`,
    data,
    origin,
  });

/** One for each cron and poll. */
export const buildSourcePolled = (
  data: z.infer<typeof SourcePolledData>,
  origin: Origin & { readonly now: Date },
): EventOf<typeof eventTypes.sourcePolled> =>
  about(eventTypes.sourcePolled, data.cron, { id: `${data.cron.uid}.polled.${origin.now.getTime()}`, data, origin });

/** Events about a channel of a policy. */
export type PolicyVersionEventType =
  | typeof eventTypes.versionPromoted
  | typeof eventTypes.versionPinned
  | typeof eventTypes.versionRolledBack
  | typeof eventTypes.versionMarkedBad
  | typeof eventTypes.versionDeprecated;

export type VersionEventType = Exclude<Extract<EventType, `dev.bullion.version.${string}`>, PolicyVersionEventType>;

/** `transition` distinguishes the events about versions of the same cron. */
export const buildVersionEvent = (
  type: VersionEventType,
  data: z.infer<typeof VersionData>,
  transition: string,
  origin: Origin,
): EventOf<VersionEventType> =>
  about(type, data.cron, { id: `${data.cron.uid}.${transition}`, data, origin }) as EventOf<VersionEventType>;

/** `transition` distinguishes the events about versions under the same policy. */
export const buildPolicyVersionEvent = (
  type: PolicyVersionEventType,
  data: z.infer<typeof PolicyVersionData>,
  transition: string,
  origin: Origin,
): EventOf<PolicyVersionEventType> =>
  about(type, data.policy, { id: `${data.policy.uid}.${transition}`, data, origin }) as EventOf<PolicyVersionEventType>;

export type BackupEventType = Extract<EventType, `dev.bullion.backup.${string}`>;

/** `transition` distinguishes the events about backups of the same image. */
export const buildBackupEvent = (
  type: BackupEventType,
  data: z.infer<typeof BackupData>,
  transition: string,
  origin: Origin,
): EventOf<BackupEventType> =>
  about(type, data.image, { id: `${data.image.uid}.backup.${transition}`, data, origin }) as EventOf<BackupEventType>;

/** An event of the store in `source`. It concerns no object of the cluster, so the subject is the key, as in the CloudEvents adapter for S3. */
export const buildStoredObjectChanged = (
  data: z.infer<typeof StoredObjectData>,
  { id, source, time }: { readonly id: string; readonly source: string; readonly time: string },
): EventOf<typeof eventTypes.storedObjectChanged> => ({
  id,
  type: eventTypes.storedObjectChanged,
  source,
  subject: data.key,
  time,
  datacontenttype: 'application/json',
  extensions: {},
  data,
});

/** Subject and extensions are those of ApiServerSource, so that one Trigger filter serves both. */
const about = <T extends EventType, D>(
  type: T,
  object: Omit<ObjectRef, 'namespace'> & { readonly namespace?: string | undefined },
  { id, data, origin }: { readonly id: string; readonly data: D; readonly origin: Origin },
) => ({
  id,
  type,
  source: origin.source,
  subject: subjectOf(object),
  time: (origin.now ?? new Date()).toISOString(),
  datacontenttype: 'application/json',
  extensions: {
    apiversion: object.apiVersion,
    kind: object.kind,
    name: object.name,
    namespace: object.namespace ?? '',
  },
  data,
});

// The subject of the events that ApiServerSource sends. Its plural is derived from the kind, which is wrong for some kinds; see isGuessable.

/** The plural that Kubernetes libraries derive from a kind: lower case, then `s`, `es` after s, or `ies` for y. */
export const guessPlural = (kind: string): string => {
  const singular = kind.toLowerCase();
  if (singular.endsWith('endpoints')) return singular;
  if (singular.endsWith('s')) return `${singular}es`;
  return singular.endsWith('y') ? `${singular.slice(0, -1)}ies` : `${singular}s`;
};

/** Whether Knative finds the kind: it watches the derived plural and silently skips a kind whose real plural differs. */
export const isGuessable = (type: Pick<ResourceType, 'kind' | 'plural'>): boolean =>
  guessPlural(type.kind) === type.plural;

/** `/apis/<apiVersion>/namespaces/<namespace>/<plural>/<name>`; the namespace is empty for cluster-scoped kinds. */
export const subjectOf = (object: {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}): string =>
  `/apis/${object.apiVersion}/namespaces/${object.namespace ?? ''}/${guessPlural(object.kind)}/${object.name}`;
