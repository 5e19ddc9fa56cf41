// What an event or a notification means for objects that import themselves.
import { type KnownEvent, eventTypes } from '#events/catalogue.ts';
import type { CloudEvent } from '#events/event.ts';
import { parseEvent } from '#events/receive.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { type ObjectImportDeps, importObject } from '#shared/object-import/drive.ts';
import { readNotification } from '#shared/object-import/notification.ts';
import { hintOf, sweepObjects } from '#shared/object-import/sweep.ts';
import { type Outcome, done, worstOf } from '#shared/runtime/outcome.ts';

/** The body of a notification as the store sent it. Throws InvalidInput for what is none. */
export const handleNotification = async (deps: ObjectImportDeps, body: unknown): Promise<Outcome> => {
  const outcomes: Outcome[] = [];
  for (const hint of readNotification(body)) outcomes.push(await importObject(deps, hint));
  return worstOf(outcomes);
};

/** Types of the CloudEvents adapter for S3, and of Ceph, which leaves the `.s3` out. */
const isStoreEvent = ({ type }: CloudEvent): boolean => type.startsWith('com.amazonaws.');

export const handleStoreEvent = async (
  deps: ObjectImportDeps,
  event: CloudEvent,
  signal: AbortSignal,
): Promise<Outcome> =>
  isStoreEvent(event) ? handleNotification(deps, event.data) : handleKnown(deps, parseEvent(event), signal);

const handleKnown = async (deps: ObjectImportDeps, event: KnownEvent, signal: AbortSignal): Promise<Outcome> => {
  switch (event.type) {
    case eventTypes.ping:
      return sweepObjects(deps, signal);
    case eventTypes.storedObjectChanged:
      return event.data === undefined ? done : importObject(deps, event.data);
    case eventTypes.imageReady:
    case eventTypes.imageFailed:
      return event.data === undefined ? done : settle(deps, event.data.image);
    default:
      return done;
  }
};

/** An image came to an end: if it was made from an object, its name may move on. */
const settle = async (deps: ObjectImportDeps, { namespace, name, kind, apiVersion }: ImageRef): Promise<Outcome> => {
  const { type } = hyperCloudImageKind;
  if (kind !== type.kind || !apiVersion.startsWith(`${type.group}/`)) return done;
  const image = await deps.kube.get(type, { namespace, name });
  const hint = image && hintOf(image);
  return hint === undefined ? done : importObject(deps, hint);
};

interface ImageRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}
