// What an event means for the kinds we serve: which object to drive, or whether there is nothing to do. Called by the event functions.
import type { KnownEvent } from '#events/catalogue.ts';
import { eventTypes, objectOf } from '#events/catalogue.ts';
import { recordDeadLetter } from '#events/dead-letter.ts';
import type { CloudEvent } from '#events/event.ts';
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import type { Owner } from '#shared/api/owner.ts';
import type { Change, Sidecar } from '#shared/backends/backend.ts';
import { pollIfDue, recordObservation } from '#shared/resources/data-import-cron/poll.ts';
import { dataSourcesConcernedBy } from '#shared/resources/data-source/follow.ts';
import type { Driven } from '#shared/resources/driven.ts';
import { isBegun, isDealtWith } from '#shared/resources/dealt-with.ts';
import { type DriverDeps, type Target, drive } from '#shared/resources/driver.ts';
import { drivenKinds, drivenOf, drivenOfGroupKind } from '#shared/resources/registry.ts';
import { holdsTemplates } from '#shared/resources/templates/observed.ts';
import { syncTemplates } from '#shared/resources/templates/sync.ts';
import { handleMachineEvent, isMachine, makeDisksOf } from '#shared/resources/machine-disks/sync.ts';
import { serveUploadClaim } from '#shared/resources/upload-claims/sync.ts';
import { wakeOthers } from '#shared/resources/wake.ts';
import { recordProgress } from '#shared/resources/report.ts';
import { type Outcome, done, worstOf } from '#shared/runtime/outcome.ts';

/** An object of ours was created or changed, or the source of a cron was asked. */
export const handleObjectEvent = async (deps: DriverDeps, event: KnownEvent): Promise<Outcome> => {
  if (event.type === eventTypes.sourcePolled) return recordAnswer(deps, event);
  const ref = objectOf(event);
  if (ref === undefined) return done;
  if (holdsTemplates(ref)) return syncTemplates(deps);
  if (isMachine(ref)) return handleMachineEvent(deps, ref);
  const driven = drivenOf(ref);
  if (driven === undefined) return done;
  if (event.type !== eventTypes.objectAdded && event.type !== eventTypes.objectUpdated)
    return drive(deps, ref, { which: 'news' });
  const object = event.data as KubeObject;
  const own = await driveChanged(deps, driven, { ref, object, isNew: event.type === eventTypes.objectAdded });
  const woken = hasComeToRest(driven, object) ? await tellOthers(deps, driven, object) : done;
  return worstOf([own, woken, await pollIfDue(deps, object), await driveConcerned(deps, object)]);
};

interface Changed {
  readonly ref: Target;
  readonly object: KubeObject;
  readonly isNew: boolean;
}

/** What is our own writing costs nothing. */
const driveChanged = async (deps: DriverDeps, driven: Driven, { ref, object, isNew }: Changed): Promise<Outcome> => {
  const isOurs = isDealtWith(driven, object) || (!isNew && isBegun(driven, object));
  return isOurs ? done : drive(deps, ref, { which: 'news', made: isNew ? object : undefined });
};

const tellOthers = async (deps: DriverDeps, driven: Driven, object: KubeObject): Promise<Outcome> => {
  const woken = await wakeOthers(deps, driven, object);
  await makeDisksOf(deps, object);
  return woken;
};

const recordAnswer = async (
  deps: DriverDeps,
  { data, time }: Extract<KnownEvent, { readonly type: typeof eventTypes.sourcePolled }>,
): Promise<Outcome> => {
  if (data === undefined) return done;
  const askedAt = Date.parse(time ?? '');
  return recordObservation(deps, data.cron, data.observation, Number.isNaN(askedAt) ? deps.now() : askedAt);
};

/** What is told to machines first comes to rest with that. */
const hasComeToRest = (driven: Driven, object: KubeObject): boolean => {
  const subject = driven.read(object);
  const isQuiet = driven.announcementOf(subject, subject.state) === undefined;
  return driven.isSettled(subject) || (isQuiet && driven.outcomeOf(subject.state).kind === 'done');
};

/** Data sources are told by what they stand for, which does not know of them. */
const driveConcerned = async (deps: DriverDeps, changed: KubeObject): Promise<Outcome> => {
  const outcomes: Outcome[] = [];
  for (const ref of await dataSourcesConcernedBy(deps.kube, changed)) {
    // oxlint-disable-next-line no-await-in-loop
    outcomes.push(await drive(deps, ref, { which: 'all' }));
  }
  return worstOf([done, ...outcomes]);
};

/** A child of one of our objects changed, or its transfer reported progress. */
export const handleChildEvent = async (deps: DriverDeps, event: KnownEvent): Promise<Outcome> => {
  switch (event.type) {
    case eventTypes.transferProgressed:
      return event.data === undefined ? done : recordProgress(deps, event, event.data);
    case eventTypes.objectAdded:
      return driveFollowers(deps, event.data as KubeObject, 'add');
    case eventTypes.objectUpdated:
      return driveFollowers(deps, event.data as KubeObject, 'update');
    case eventTypes.objectDeleted:
      return driveFollowers(deps, event.data as KubeObject, 'delete');
    default:
      return done;
  }
};

const driveFollowers = async (deps: DriverDeps, child: KubeObject, change: Change): Promise<Outcome> =>
  worstOf([
    await driveOwner(deps, child, change),
    await driveConcerned(deps, child),
    change === 'delete' ? done : await serveUploadClaim(deps, child),
  ]);

const driveOwner = async (deps: DriverDeps, child: KubeObject, change: Change): Promise<Outcome> => {
  const followed = findFollower(deps, child);
  if (followed === undefined || !followed.sidecar.matters(child, change)) return done;
  const { type } = followed.driven.kind;
  const { uid, namespace, name } = followed.owner;
  return drive(
    deps,
    { apiVersion: apiVersionOf(type), kind: type.kind, uid, namespace, name },
    { which: 'all', child },
  );
};

interface Follower {
  readonly driven: Driven;
  readonly sidecar: Sidecar;
  readonly owner: Owner;
}

/** Who follows a child: of the kinds that follow objects like it, the one its owner is of. */
const findFollower = ({ backends }: DriverDeps, child: KubeObject): Follower | undefined => {
  for (const driven of drivenKinds) {
    for (const sidecar of driven.sidecars(backends)) {
      const owner = isOfType(child, sidecar.type) ? sidecar.ownerOf(child) : undefined;
      if (owner !== undefined && drivenOfGroupKind(owner.groupKind) === driven) return { driven, sidecar, owner };
    }
  }
  return undefined;
};

const isOfType = (object: KubeObject, type: Sidecar['type']): boolean =>
  object.kind === type.kind && object.apiVersion === apiVersionOf(type);

/** An event nobody could handle: it ends as a Kubernetes Event on the object it concerns, where people look. */
export const handleDeadLetter = async (deps: DriverDeps, event: CloudEvent): Promise<Outcome> => {
  const { object: _, ...letter } = await recordDeadLetter(deps.kube, event, new Date(deps.now()));
  deps.log.error('dead letter', { type: event.type, ...letter });
  return done;
};
