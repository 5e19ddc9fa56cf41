// Maps an event to the object to reconcile, if any. Called by the event functions.
import { type KnownEvent, eventTypes, objectOf } from '#events/catalogue.ts';
import { recordDeadLetter } from '#events/dead-letter.ts';
import type { CloudEvent } from '#events/event.ts';
import { type Job, jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { apiVersionOf, type KubeObject, type Owner, refOf, sourceLabel, isOfType } from '#shared/api/object.ts';
import { pollIfDue } from '#shared/resources/data-import-cron/poll.ts';
import { carryOutOffer } from '#shared/resources/data-source/offers.ts';
import { dataSourcesConcernedBy, dataSourcesOf } from '#shared/resources/data-source/index.ts';
import { cronsConcernedBy, policiesConcernedBy } from '#shared/resources/golden-image-policy/index.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';
import { isBegun, isUpToDate } from '#shared/resources/up-to-date.ts';
import { type ReconcileTarget, reconcile } from '#shared/resources/reconcile.ts';
import { reconcilers, reconcilerOf, reconcilerOfGroupKind } from '#shared/resources/registry.ts';
import { holdsTemplates } from '#shared/resources/templates/observed.ts';
import { syncTemplates } from '#shared/resources/templates/sync.ts';
import { handleMachineEvent, makeDisksOf } from '#shared/resources/machine-disks/sync.ts';
import { serveUploadClaim } from '#shared/resources/upload-claims/sync.ts';
import { recordProgress } from '#shared/resources/report.ts';
import { type Outcome, done, worstOf } from '#shared/runtime/outcome.ts';
import { labels } from '#shared/api/names.ts';
import { reconcileEach } from '#shared/resources/each.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { isFinished } from '#shared/populate/job/attempts.ts';
import { advanceQueue } from '#shared/populate/queue/advance.ts';
import { transferJobName } from '#shared/populate/job/transfer-job.ts';
import { type Change, type WatchedChild, isLeaving } from '#shared/populate/watched-child.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';

/** A served object was created or changed, or the source of a cron was polled. */
export const handleObjectEvent = async (deps: ReconcileDeps, event: KnownEvent): Promise<Outcome> => {
  const ref = objectOf(event);
  if (ref === undefined) return done;
  if (holdsTemplates(ref)) return syncTemplates(deps);
  if (isOfType(ref, virtualMachines)) return handleMachineEvent(deps, ref);
  const reconciler = reconcilerOf(ref);
  if (reconciler === undefined) return done;
  // The result of the poll is in the cron: the event itself is not trusted.
  if (event.type === eventTypes.sourcePolled) return reconcile(deps, ref, { which: 'all' });
  if (event.type !== eventTypes.objectAdded && event.type !== eventTypes.objectUpdated)
    return reconcile(deps, ref, { which: 'news' });
  const object = event.data as KubeObject;
  const own = await reconcileChanged(deps, reconciler, { ref, object, isNew: event.type === eventTypes.objectAdded });
  const woken = hasComeToRest(reconciler, object) ? await notifyOthers(deps, reconciler, object) : done;
  await carryOutOffer(deps, object);
  return worstOf([own, woken, await pollIfDue(deps, object), await reconcileConcerned(deps, object)]);
};

interface Changed {
  readonly ref: ReconcileTarget;
  readonly object: KubeObject;
  readonly isNew: boolean;
}

/** Events of our own writes cause no work. */
const reconcileChanged = async (
  deps: ReconcileDeps,
  reconciler: Reconciler,
  { ref, object, isNew }: Changed,
): Promise<Outcome> => {
  const isOurs = isUpToDate(reconciler, object) || (!isNew && isBegun(reconciler, object));
  return isOurs ? done : reconcile(deps, ref, { which: 'news' });
};

const notifyOthers = async (deps: ReconcileDeps, reconciler: Reconciler, object: KubeObject): Promise<Outcome> => {
  const woken = await wakeOthers(deps, reconciler, object);
  await makeDisksOf(deps, object);
  return worstOf([woken, await reconcileAll(deps, await dataSourcesOf(deps.kube, object))]);
};

/** An object that is announced settles with its announcement. */
const hasComeToRest = (reconciler: Reconciler, object: KubeObject): boolean => {
  const resource = reconciler.read(object);
  const isQuiet = reconciler.announcementOf(resource, resource.state) === undefined;
  return reconciler.isSettled(resource) || (isQuiet && reconciler.outcomeOf(resource.state).kind === 'done');
};

/** Reconciles data sources when their target changes, policies when a cron does, and crons when what their policy keeps does: none refers to them. */
const reconcileConcerned = async (deps: ReconcileDeps, changed: KubeObject): Promise<Outcome> =>
  reconcileAll(deps, [
    ...(await policiesConcernedBy(deps.kube, changed)),
    ...(await cronsConcernedBy(deps.kube, changed, deps.now())),
    ...(await dataSourcesConcernedBy(deps.kube, changed)),
  ]);

const reconcileAll = async (deps: ReconcileDeps, refs: readonly ReconcileTarget[]): Promise<Outcome> => {
  const outcomes: Outcome[] = [];
  for (const ref of refs) {
    outcomes.push(await reconcile(deps, ref, { which: 'all' }));
  }
  return worstOf([done, ...outcomes]);
};

/** A child of a served object changed, or its transfer reported progress. */
export const handleChildEvent = async (deps: ReconcileDeps, event: KnownEvent): Promise<Outcome> => {
  switch (event.type) {
    case eventTypes.transferProgressed:
      return event.data === undefined ? done : recordProgress(deps, event, event.data);
    case eventTypes.objectAdded:
      return reconcileFollowers(deps, event.data as KubeObject, 'add');
    case eventTypes.objectUpdated:
      return reconcileFollowers(deps, event.data as KubeObject, 'update');
    case eventTypes.objectDeleted:
      return reconcileFollowers(deps, event.data as KubeObject, 'delete');
    default:
      return done;
  }
};

const reconcileFollowers = async (deps: ReconcileDeps, child: KubeObject, change: Change): Promise<Outcome> => {
  if (change === 'update') await endDownloads(deps, child);
  if (hasLeftQueue(child, change)) await advanceQueue(deps.kube, { now: deps.now(), cause: 'ended' });
  return worstOf([
    await reconcileOwner(deps, child, change),
    await reconcileConcerned(deps, child),
    change === 'delete' ? done : await serveUploadClaim(deps, child),
  ]);
};

/** Another transfer may start in its place. */
const hasLeftQueue = (child: KubeObject, change: Change): boolean =>
  child.metadata.labels?.[labels.queue] === 'running' && (change === 'delete' || isFinished(child as Job));

/** The Job that serves downloads keeps its claim in use until it has been idle for a while: the claim of a deleted object would stay as long. */
const endDownloads = async ({ kube }: ReconcileDeps, claim: KubeObject): Promise<void> => {
  if (!isOfType(claim, persistentVolumeClaims) || !isLeaving(claim)) return;
  const key = { namespace: claim.metadata.namespace, name: transferJobName('serve', refOf(claim)) };
  const job = await kube.get(jobs, key);
  if (job !== undefined && !isLeaving(job))
    await kube.delete(jobs, key, { uid: job.metadata.uid ?? '', propagation: 'Foreground' });
};

const reconcileOwner = async (deps: ReconcileDeps, child: KubeObject, change: Change): Promise<Outcome> => {
  const followed = findFollower(deps, child);
  if (followed === undefined || !followed.watchedChild.matters(child, change)) return done;
  const { type } = followed.reconciler.kind;
  const { uid, namespace, name } = followed.owner;
  return reconcile(
    deps,
    { apiVersion: apiVersionOf(type), kind: type.kind, uid, namespace, name },
    { which: 'all', child },
  );
};

interface Follower {
  readonly reconciler: Reconciler;
  readonly watchedChild: WatchedChild;
  readonly owner: Owner;
}

/** The reconciler that watches a child: of those that watch its kind, the one of its owner's kind. */
const findFollower = ({ backends }: ReconcileDeps, child: KubeObject): Follower | undefined => {
  for (const reconciler of reconcilers) {
    for (const watchedChild of reconciler.watchedChildren(backends)) {
      const owner = isOfType(child, watchedChild.type) ? watchedChild.ownerOf(child) : undefined;
      if (owner !== undefined && reconcilerOfGroupKind(owner.groupKind) === reconciler)
        return { reconciler, watchedChild, owner };
    }
  }
  return undefined;
};

/** An event that could not be handled: recorded as a Kubernetes Event on its object. */
export const handleDeadLetter = async (deps: ReconcileDeps, event: CloudEvent): Promise<Outcome> => {
  const { object: _, ...letter } = await recordDeadLetter(deps.kube, event, new Date(deps.now()));
  deps.log.error('dead letter', { type: event.type, ...letter });
  return done;
};

// A settled object: objects that wait for it are reconciled. This replaces polling.

/** Finds waiting objects by label, kind by kind; without any, an event costs one empty list per kind. */
const wakeOthers = async (deps: ReconcileDeps, reconciler: Reconciler, object: KubeObject): Promise<Outcome> => {
  const resource = reconciler.read(object);
  const outcomes: Outcome[] = [];
  for (const offer of reconciler.links?.offersOf(resource) ?? []) {
    const labelSelector = `${labels.source}=${sourceLabel(offer)}`;
    for (const waiting of waitersFor(offer.groupKind)) {
      outcomes.push(await reconcileEach(deps, waiting, deps.kube.listAll(waiting.kind.type, { labelSelector })));
    }
  }
  const source = reconciler.links?.sourceOf(resource);
  const owner = source && reconcilerOfGroupKind(source.groupKind);
  if (source !== undefined && owner !== undefined) {
    const { type } = owner.kind;
    outcomes.push(await reconcile(deps, { ...source, apiVersion: apiVersionOf(type), kind: type.kind }));
  }
  return worstOf(outcomes);
};

const waitersFor = (groupKind: string): readonly Reconciler[] =>
  reconcilers.filter(({ links }) => links?.waitsFor.includes(groupKind) === true);
