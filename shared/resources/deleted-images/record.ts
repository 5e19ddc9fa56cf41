// What is left of an image that was deleted within its grace: the one object that holds its bytes, with a record of the image on it. Pure.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { annotations, deletedOwner, labels } from '#shared/api/names.ts';
import {
  childMetadata,
  groupKindOf,
  type KubeObject,
  type ObjectRef,
  type Owner,
  ownerOf,
  type ResourceType,
} from '#shared/api/object.ts';
import { type Action, patch } from '#shared/populate/actions.ts';
import { parseSpan } from '#shared/runtime/age.ts';
import { redactUrls } from '#shared/runtime/redact.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

const Texts = z.record(z.string(), z.string()).optional();

const DeletedImage = z.object({
  /** RFC 3339. */
  deleted: z.string(),
  /** RFC 3339: afterwards the bytes are removed. */
  until: z.string(),
  /** Field of the status that named the object. */
  child: z.enum(['volume', 'backingImage']),
  /** Whether the object is owned by its image, as one of its namespace. */
  isOwned: z.boolean(),
  bytes: z.number().optional(),
  /** URLs have lost user info and queries: a user who may read a claim may not be allowed to read the image. */
  image: z.object({ labels: Texts, annotations: Texts, spec: z.looseObject({}) }),
});
export type DeletedImage = z.infer<typeof DeletedImage>;

/** `undefined`: the object holds no deleted image. */
export const deletedImageIn = ({ metadata }: KubeObject): DeletedImage | undefined =>
  parseJsonAs(DeletedImage, metadata.annotations?.[annotations.deleted]);

/** Ten years: a later time may be none that can be written. */
export const mostGrace = 3650 * 24 * 3_600_000;

/** Milliseconds for which an image can be brought back; `undefined`: not at all. */
export const graceOf = ({ metadata }: KubeObject): number | undefined => {
  const grace = parseSpan(metadata.annotations?.[annotations.undeleteFor] ?? '');
  return grace === undefined || grace === 0 ? undefined : Math.min(grace, mostGrace);
};

/** Of one life only: decided for that image, by its admission, or by kubectl. */
const passing: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  annotations.granted,
  annotations.retry,
  annotations.resumedPause,
  annotations.offered,
  annotations.undelete,
]);

/** Data without what URLs may hide, and without what is not written at all. */
const redacted = (data: unknown): unknown =>
  JSON.parse(
    JSON.stringify(data ?? {}, (_, value: unknown) => (typeof value === 'string' ? redactUrls(value) : value)),
  );

const specOf = (image: KubeObject): unknown => redacted((image as { readonly spec?: unknown }).spec);

/** An object that holds the bytes of an image. */
export interface Holder {
  readonly type: ResourceType;
  readonly child: DeletedImage['child'];
  readonly object: KubeObject;
}

/** From now on it belongs to nobody, so that the removal of the image leaves it. */
export const detach = (
  image: KubeObject,
  { type, child, object }: Holder,
  { grace, bytes }: { readonly grace: number; readonly bytes: number | undefined },
): Action => {
  const { metadata } = image;
  const deleted = metadata.deletionTimestamp ?? '';
  const notes = Object.entries(metadata.annotations ?? {}).filter(([key]) => !passing.has(key));
  const record: DeletedImage = {
    deleted,
    until: new Date(Date.parse(deleted) + grace).toISOString().replace('.000Z', 'Z'),
    child,
    isOwned: object.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) === true,
    ...(bytes === undefined ? {} : { bytes }),
    image: redacted({
      labels: metadata.labels,
      annotations: Object.fromEntries(notes),
      spec: (image as { readonly spec?: unknown }).spec,
    }) as DeletedImage['image'],
  };
  const owners = object.metadata.ownerReferences ?? [];
  return patch(type, object, {
    metadata: {
      labels: { [labels.ownerUid]: deletedOwner },
      annotations: { [annotations.deleted]: JSON.stringify(record) },
      ownerReferences: owners.filter(({ uid }) => uid !== metadata.uid),
    },
  });
};

/** The image that an object holds the bytes of, whether that is deleted or was brought back. */
export const imageOfHolder = (object: KubeObject): (Owner & { readonly record: DeletedImage }) | undefined => {
  const [owner, record] = [ownerOf(object), deletedImageIn(object)];
  return owner === undefined || record === undefined ? undefined : { ...owner, record };
};

/** Why an image must not have these bytes; `undefined`: they are its own. */
export const unlike = (image: KubeObject, ref: ObjectRef, object: KubeObject): string | undefined => {
  const kept = imageOfHolder(object);
  const isIts =
    kept !== undefined &&
    (kept.uid === deletedOwner || kept.uid === ref.uid) &&
    kept.groupKind === groupKindOf(ref) &&
    kept.namespace === (ref.namespace ?? '') &&
    kept.name === ref.name;
  if (!isIts) return `${object.kind} ${object.metadata.name} holds no deleted image of this name`;
  if (object.metadata.deletionTimestamp !== undefined) return `${object.kind} ${object.metadata.name} is being removed`;
  return isDeepStrictEqual(specOf(image), kept.record.image.spec)
    ? undefined
    : `spec differs from that of the deleted image: bullion undelete writes it as it was`;
};

/** It belongs to this image from now on. */
export const attach = (ref: ObjectRef, { type, object }: Holder): Action => {
  const own = childMetadata(ref, 'volume', object.metadata.name);
  const isOwned = deletedImageIn(object)?.isOwned === true;
  return patch(type, object, {
    metadata: {
      labels: { [labels.ownerUid]: ref.uid },
      ...(isOwned
        ? { ownerReferences: [...(object.metadata.ownerReferences ?? []), ...(own.ownerReferences ?? [])] }
        : {}),
    },
  });
};

/** The image as it was, to be created once more. */
export const imageFrom = (
  { namespace, name, record }: NonNullable<ReturnType<typeof imageOfHolder>>,
  { group, version, kind }: ResourceType,
  holder: KubeObject,
): KubeObject & { readonly spec: object } => ({
  apiVersion: `${group}/${version}`,
  kind,
  metadata: {
    namespace,
    name,
    ...(record.image.labels && { labels: record.image.labels }),
    annotations: { ...record.image.annotations, [annotations.undelete]: holder.metadata.name },
  },
  spec: record.image.spec,
});
