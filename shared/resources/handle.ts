// What an event means for images: which one to drive, or whether there is nothing to do. Called by the event functions.
import type { KnownEvent } from '#events/catalogue.ts';
import { eventTypes, objectOf } from '#events/catalogue.ts';
import { recordDeadLetter } from '#events/dead-letter.ts';
import type { CloudEvent } from '#events/event.ts';
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import type { Change, Sidecar } from '#shared/backends/backend.ts';
import { type BackendRegistry, type Registration } from '#shared/backends/registry.ts';
import type { ImageObject } from '#shared/resources/dialect.ts';
import { type DriverDeps, driveImage } from '#shared/resources/driver.ts';
import { dialectOf, dialectOfGroupKind } from '#shared/resources/registry.ts';
import { recordProgress } from '#shared/resources/report.ts';
import { isDealtWith } from '#shared/resources/transitions.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';

/** An image was created or changed. */
export const handleImageEvent = async (deps: DriverDeps, event: KnownEvent): Promise<Outcome> => {
  const ref = objectOf(event);
  const dialect = ref && dialectOf(ref);
  if (ref === undefined || dialect === undefined) return done;
  if (event.type === eventTypes.objectAdded || event.type === eventTypes.objectUpdated) {
    const object = event.data as ImageObject;
    if (isDealtWith(dialect.toImage(object), object.status?.observedGeneration)) return done;
  }
  return driveImage(deps, ref);
};

/** A child of an image changed, or its transfer reported progress. */
export const handleChildEvent = async (deps: DriverDeps, event: KnownEvent): Promise<Outcome> => {
  switch (event.type) {
    case eventTypes.transferProgressed:
      return event.data === undefined ? done : recordProgress(deps, event.data.owner, event.data.progress);
    case eventTypes.objectAdded:
      return driveOwner(deps, event.data as KubeObject, 'add');
    case eventTypes.objectUpdated:
      return driveOwner(deps, event.data as KubeObject, 'update');
    case eventTypes.objectDeleted:
      return driveOwner(deps, event.data as KubeObject, 'delete');
    default:
      return done;
  }
};

const driveOwner = async (deps: DriverDeps, child: KubeObject, change: Change): Promise<Outcome> => {
  const sidecar = sidecarsOf(deps.backends).find(({ type }) => isOfType(child, type));
  const owner = sidecar?.imageOf(child);
  const dialect = owner && dialectOfGroupKind(owner.groupKind);
  if (sidecar === undefined || owner === undefined || dialect === undefined) return done;
  if (!sidecar.matters(child, change)) return done;
  const { type } = dialect.kind;
  const { uid, namespace, name } = owner;
  return driveImage(deps, { apiVersion: apiVersionOf(type), kind: type.kind, uid, namespace, name }, { verify: true });
};

const sidecarsOf = (backends: BackendRegistry): readonly Sidecar[] =>
  Object.values<Registration>(backends).flatMap((registration) =>
    registration.served ? registration.backend.sidecars : [],
  );

const isOfType = (object: KubeObject, type: Sidecar['type']): boolean =>
  object.kind === type.kind && object.apiVersion === apiVersionOf(type);

/** An event nobody could handle: it ends as a Kubernetes Event on the object it concerns, where people look. */
export const handleDeadLetter = async (deps: DriverDeps, event: CloudEvent): Promise<Outcome> => {
  const { object: _, ...letter } = await recordDeadLetter(deps.kube, event, new Date(deps.now()));
  deps.log.error('dead letter', { type: event.type, ...letter });
  return done;
};
