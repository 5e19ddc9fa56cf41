// Reconciles one object by one step: read it, observe its children, plan, act, write status once. Called by every event function.
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { isoTime } from '#shared/populate/state.ts';
import { isUpToDate } from '#shared/resources/up-to-date.ts';
import type { Reconciler, ReconciledState, Planner, Refusal, Resource } from '#shared/resources/reconciler.ts';
import { hold, writeMetadata, announceFinal, recordNotes, writeStatus } from '#shared/resources/write.ts';
import { claimName, releaseName } from '#shared/resources/name-claim.ts';
import { reconcilerOf } from '#shared/resources/registry.ts';
import { act, contextOf, stepOf } from '#shared/resources/step.ts';
import { AppError } from '#shared/runtime/errors.ts';
import { type Outcome, done, retry, waiting } from '#shared/runtime/outcome.ts';
import { currentContext, spanTime, traceOfObject, withSpan } from '#shared/runtime/trace.ts';
import type { ReconcileDeps, Reconciliation } from '#shared/resources/deps.ts';
import { isChangedMeanwhile, tolerate, retryConflicts } from '#shared/clients/kube/tolerant.ts';

/** The object to reconcile. With a UID, a later object with the same name is ignored. */
export interface ReconcileTarget {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid?: string | undefined;
}

export interface ReconcileOptions {
  /**
   * Objects to reconcile: those that are not settled; `all`, because a child has changed; or only those with an unhandled change of spec,
   * deletion or retry.
   */
  readonly which?: 'unsettled' | 'all' | 'news';
  /** The child that has changed. */
  readonly child?: KubeObject | undefined;
}

/** Passes over one object that is changed concurrently. */
const maxRounds = 5;

/** Safe to call at any time, repeatedly and concurrently. Throws Unavailable if the API is. */
export const reconcile = async (
  deps: ReconcileDeps,
  target: ReconcileTarget,
  options: ReconcileOptions = {},
): Promise<Outcome> => {
  const reconciler = reconcilerOf(target);
  if (reconciler === undefined || (await isLeftToCdi(deps, reconciler))) return done;
  const pass = (round: number) =>
    reconcileOnce(deps, reconciler, target, round === 1 ? { ...options, isFirst: true } : again);
  const outcome = await tolerate(retryConflicts(maxRounds, pass, isChangedMeanwhile), isChangedMeanwhile);
  return outcome ?? retry(2, `${target.kind} ${target.name} keeps being changed by other clients`);
};

/** An installed CDI reconciles its own kinds, and its crons control their DataSources. */
export const isLeftToCdi = async ({ cdi }: ReconcileDeps, { kind }: Reconciler): Promise<boolean> =>
  (kind.type.group === cdiGroup || kind.type.kind === goldenImagePolicyKind.type.kind) && (await cdi()) === 'use';

type Round = ReconcileOptions & { readonly isFirst: boolean };

/** For an object that changed during the previous pass: even a settled one may have children of that pass to remove. */
const again: Round = { which: 'all', isFirst: false };

const reconcileOnce = async (
  deps: ReconcileDeps,
  reconciler: Reconciler,
  target: ReconcileTarget,
  round: Round,
): Promise<Outcome> => {
  // The content of the event is not trusted: without authentication anyone may post one.
  const object = await deps.kube.get(reconciler.kind.type, target);
  if (object === undefined) return done;
  const resource = reconciler.read(object);
  if (target.uid !== undefined && target.uid !== resource.ref.uid) return done;
  const reconciliation = { deps, reconciler, object, resource };
  if (resource.deleting) return inTrace(reconciliation, () => remove(reconciliation));
  if (isAtRest(reconciliation, round)) return reconciler.outcomeOf(resource.state);
  const isTrusted = round.isFirst && !reconciler.isRetryDue(resource) && !reconciler.isSettled(resource);
  return inTrace(reconciliation, () =>
    advance({ ...reconciliation, resource: { ...resource, trustsStatus: isTrusted } }),
  );
};

/** Whether the requested reconciliation would change nothing. */
const isAtRest = (
  { deps, reconciler, object, resource }: Reconciliation,
  { which = 'unsettled', child }: Round,
): boolean => {
  if (child !== undefined && reconciler.isMovedBy?.(resource, child) === false) return true;
  if (which === 'all') return false;
  return which === 'news' ? isUpToDate(reconciler, object) : reconciler.isSettled(resource, deps.now());
};

const advance = async (reconciliation: Reconciliation): Promise<Outcome> => {
  const { deps, reconciler, resource } = reconciliation;
  const refusal = reconciler.refusalOf(resource, deps.backends, deps.settings);
  if (refusal !== undefined && reconciler.isUsable?.(resource.state) !== true)
    return conclude(reconciliation, reconciler.failed(resource, refusal));
  const planner = reconciler.plannerOf(resource, deps.backends);
  if (planner === undefined) return done;
  const held = await hold({ ...reconciliation, resource: { ...resource, state: reconciler.revived(resource) } });
  const taken = await claimName({ kube: deps.kube, reconciler, resource: held.resource });
  if (taken !== undefined) return conclude(held, reconciler.failed(held.resource, taken));
  const back = await takeBack(held);
  if ('message' in back) return conclude(held, reconciler.failed(held.resource, back));
  const { state, hasBegun } = await stepOf({ ...held, resource: back }, planner, refusal);
  return conclude(held, state, hasBegun);
};

const takeBack = async ({ deps, reconciler, object, resource }: Reconciliation): Promise<Resource | Refusal> =>
  (await reconciler.takeBack?.(deps.kube, object, resource)) ?? resource;

const remove = async (reconciliation: Reconciliation): Promise<Outcome> => {
  const { deps, reconciler, resource } = reconciliation;
  const finalizer = reconciler.finalizerOf(resource);
  if (finalizer === undefined || !resource.finalizers.includes(finalizer)) return done;
  const planner = reconciler.plannerOf(resource, deps.backends);
  const { removed, state } =
    planner === undefined ? { removed: true, state: resource.state } : await removalOf(reconciliation, planner);
  if (!removed) {
    await writeStatus(reconciliation, state, isoTime(deps.now()));
    return waiting(state.message);
  }
  await releaseName({ kube: deps.kube, reconciler, resource });
  await writeMetadata(reconciliation, { finalizers: resource.finalizers.filter((name) => name !== finalizer) });
  return done;
};

const removalOf = async (
  reconciliation: Reconciliation,
  planner: Planner<Resource>,
): Promise<{ readonly removed: boolean; readonly state: ReconciledState }> => {
  const { deps, reconciler, object, resource } = reconciliation;
  const context = contextOf(deps);
  try {
    const observed = await planner.check(deps.kube, resource);
    const removal = planner.remove(resource, observed, context);
    // Once nothing uses it any more.
    const isKept = removal.actions.length > 0 && (await reconciler.keep?.(deps.kube, object, resource, context.now));
    if (isKept === true) return await removalOf(reconciliation, planner);
    await act(deps, removal.actions);
    return removal;
  } catch (error) {
    if (!(error instanceof AppError) || error.retryable) throw error;
    return { removed: false, state: reconciler.refused(resource, error, context) };
  }
};

/**
 * Sends notifications and writes the new state. Events come first: they may be repeated without harm, but a step whose state was written is not
 * repeated, so an event that was not sent before a crash would be lost.
 */
const conclude = async (reconciliation: Reconciliation, state: ReconciledState, hasBegun = false): Promise<Outcome> => {
  const { deps, reconciler, resource } = reconciliation;
  const isQuiet = deps.announce === undefined;
  const next = isQuiet ? { ...state, announced: reconciler.announcementOf(resource, state) } : state;
  const now = isoTime(deps.now());
  await recordNotes(reconciliation, next);
  recordLife(reconciliation, state);
  const written = await writeStatus(reconciliation, next, now, hasBegun);
  const isReported = isQuiet || (await announceFinal({ ...reconciliation, object: written }, next, now));
  return isReported ? reconciler.outcomeOf(state) : retry(10, 'the event sink does not accept events');
};

// One trace for everything done for an object: each pass is a span, and the lifetime of the object, from its creation until it settled, is the
// root.

const nameOf = ({ resource: { ref } }: Reconciliation): string =>
  `${ref.kind} ${ref.namespace === undefined ? '' : `${ref.namespace}/`}${ref.name}`;

/** Runs `work` in the trace of the object, linked to the trace of the event. */
const inTrace = <T>(reconciliation: Reconciliation, work: () => Promise<T>): Promise<T> => {
  const { trace, tracer } = currentContext();
  if (tracer === undefined) return work();
  const { ref, state } = reconciliation.resource;
  const attributes = { 'bullion.object': nameOf(reconciliation), phase: state.phase, reason: state.reason };
  const links = trace === undefined ? [] : [trace];
  return withSpan('reconcile', { parent: traceOfObject(ref.uid), links, attributes }, work);
};

/** Recorded again for the same end, it is the same span. */
const recordLife = (reconciliation: Reconciliation, state: ReconciledState): void => {
  const { tracer } = currentContext();
  if (tracer === undefined) return;
  const { reconciler, resource, object } = reconciliation;
  const ending = reconciler.announcementOf(resource, state);
  if (ending === undefined || ending === resource.state.announced) return;
  const { traceId, spanId } = traceOfObject(resource.ref.uid);
  tracer.record({
    traceId,
    spanId,
    name: nameOf(reconciliation),
    kind: 'internal',
    startMs: Date.parse(object.metadata.creationTimestamp ?? '') || spanTime(),
    endMs: spanTime(),
    attributes: { phase: state.phase, reason: state.reason, failures: state.failures },
    ...(state.phase === 'Failed' ? { error: state.message } : {}),
  });
};
