// The writes after a decision: status, Kubernetes Events, the announcement. Called by the reconciler and for progress reports.
import { isDeepStrictEqual } from 'node:util';
import { buildPolicyVersionEvent, buildVersionEvent } from '#events/build.ts';
import type { CloudEvent } from '#events/event.ts';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import { type KubeObject, type ObjectRef, refOf, sourceLabel } from '#shared/api/object.ts';
import { isoTime } from '#shared/populate/state.ts';
import type { ReconciledState, Resource } from '#shared/resources/reconciler.ts';
import { type Note, type VersionNote, toKubeEvent } from '#shared/resources/transitions.ts';
import { isNamespaceLeaving } from '#shared/clients/kube/wire.ts';
import { isConflict, messageOf } from '#shared/runtime/errors.ts';
import { labels } from '#shared/api/names.ts';
import type { ReconcileDeps, Reconciliation } from '#shared/resources/deps.ts';

/** Attempts to write one status while others change unrelated fields. */
const maxWrites = 5;

const statusOf = (object: KubeObject): unknown => (object as { readonly status?: unknown }).status;

/**
 * Writes nothing if the status already has `state`, unless `mustWrite`: for callers that need to detect a concurrent change. Conflict if the
 * input of the decision has changed since it was read; labels and annotations of others do not count, or frequent writers could block an import
 * forever. `now` is RFC 3339.
 */
export const writeStatus = async (
  reconciliation: Reconciliation,
  state: ReconciledState,
  now: string,
  mustWrite = false,
): Promise<KubeObject> => {
  const { deps, reconciler, object, resource } = reconciliation;
  const status = reconciler.toStatus(object, resource, state, now);
  if (!mustWrite && isDeepStrictEqual(status, statusOf(object))) return object;
  let base = object;
  for (let write = 1; ; write += 1) {
    const next: KubeObject & { readonly status: object } = { ...base, status };
    try {
      // Each attempt starts with a new read.
      return await deps.kube.replace(reconciler.kind.type, next, { subresource: 'status' });
    } catch (error) {
      if (!isConflict(error) || write === maxWrites) throw error;
      const current = await deps.kube.get(reconciler.kind.type, object.metadata);
      if (current === undefined || !isAsDecidedFrom(reconciliation, current)) throw error;
      base = current;
    }
  }
};

/** Whether a plan for the object as it was read is still valid. */
const isAsDecidedFrom = ({ reconciler, object }: Reconciliation, current: KubeObject): boolean =>
  isDeepStrictEqual(statusOf(current), statusOf(object)) &&
  inputOf(reconciler.read(current)) === inputOf(reconciler.read(object));

/** Everything a plan may depend on: data, not functions, and neither the version of the object nor its field managers. */
const inputOf = (resource: Resource): string =>
  JSON.stringify(resource, (key, value: unknown) =>
    key === 'resourceVersion' || key === 'managedFields' ? undefined : value,
  );

/** Records the Events of the step from the object's old state to `state`. */
export const recordNotes = async (
  { deps, reconciler, resource }: Reconciliation,
  state: ReconciledState,
): Promise<void> => {
  for (const note of reconciler.notesOf(resource.state, state, resource)) {
    await recordNote(deps, resource.ref, note);
    await announceVersion(deps, resource.ref, note);
  }
};

const announceVersion = async ({ send, log, now }: ReconcileDeps, about: ObjectRef, note: Note): Promise<void> => {
  const { version } = note;
  if (version === undefined || send === undefined) return;
  const { isDelivered } = await send(toVersionEvent(about, note, version, new Date(now())));
  if (!isDelivered) log.warn('event not sent', { type: version.type, version: version.name });
};

export const toVersionEvent = (
  about: ObjectRef,
  { reason, message, occurrence }: Note,
  version: VersionNote,
  now: Date,
): CloudEvent => {
  const origin = { source: 'bullion.dev/golden', now };
  const data = { version: version.name, reason, message };
  if (version.of === 'cron') return buildVersionEvent(version.type, { cron: about, ...data }, occurrence, origin);
  const { channel } = version;
  const of = { policy: about, ...(channel === undefined ? {} : { channel }), ...data };
  return buildPolicyVersionEvent(version.type, of, occurrence, origin);
};

/** A conflict means that it was recorded before; in a namespace that is being deleted nobody would read it. */
const logLost = ({ log }: Pick<ReconcileDeps, 'log'>, { reason }: Note, error: unknown): void => {
  if (!isConflict(error) && !isNamespaceLeaving(error))
    log.warn('event not recorded', { reason, error: messageOf(error) });
};

/** Events are for users: one that cannot be written is logged, and not waited for. */
export const recordNote = async (
  deps: Pick<ReconcileDeps, 'kube' | 'now' | 'log'>,
  about: ObjectRef,
  note: Note,
): Promise<void> => {
  try {
    await deps.kube.create(kubeEvents, toKubeEvent(about, note, isoTime(deps.now())));
  } catch (error) {
    logLost(deps, note, error);
  }
};

/** Repeated occurrences in one Event: their number, and the latest message. Costs one read and one write. */
export const countNote = async (
  deps: Pick<ReconcileDeps, 'kube' | 'now' | 'log'>,
  about: ObjectRef,
  note: Note,
): Promise<void> => {
  const event = toKubeEvent(about, note, isoTime(deps.now()));
  try {
    const known = await deps.kube.get(kubeEvents, event.metadata);
    if (known === undefined) {
      await deps.kube.create(kubeEvents, event);
      return;
    }
    const { type, message, lastTimestamp } = event;
    await deps.kube.mergePatch(kubeEvents, event.metadata, {
      type,
      message,
      lastTimestamp,
      count: (known.count ?? 1) + 1,
    });
  } catch (error) {
    logLost(deps, note, error);
  }
};

/**
 * Announces a final transition at least once: it is recorded as announced only after the delivery, and an object without it is not settled.
 * Returns whether nothing is left to announce.
 */
export const announceFinal = async (
  reconciliation: Reconciliation,
  state: ReconciledState,
  now: string,
): Promise<boolean> => {
  const { announce } = reconciliation.deps;
  const announcement = reconciliation.reconciler.announcementOf(reconciliation.resource, state);
  if (announce === undefined || announcement === undefined || announcement === state.announced) return true;
  if (
    !(await announce(
      reconciliation.resource,
      state,
      reconciliation.reconciler.endingOf?.(reconciliation.resource, state),
    ))
  )
    return false;
  await writeStatus(reconciliation, { ...state, announced: announcement }, now);
  return true;
};

// Setting and removing the finalizer: writes of metadata that are valid only for the version that was read.

/**
 * Sets the finalizer before the first child is created, so that no child outlives the object, and the source label before an object is read
 * that it may have to wait for.
 */
export const hold = async (reconciliation: Reconciliation): Promise<Reconciliation> => {
  const { deps, reconciler, object, resource } = reconciliation;
  const finalizer = reconciler.finalizerOf(resource);
  const isHeld = finalizer === undefined || resource.finalizers.includes(finalizer);
  const source = reconciler.links?.sourceOf(resource);
  const label = source && sourceLabel(source);
  const isLabelled = label === undefined || object.metadata.labels?.[labels.source] === label;
  if (isHeld && isLabelled) return reconciliation;
  const held = await writeMetadata(reconciliation, {
    ...(isHeld ? {} : { finalizers: [...resource.finalizers, finalizer] }),
    ...(isLabelled ? {} : { labels: { [labels.source]: label } }),
  });
  return { deps, reconciler, object: held, resource: { ...resource, ...metadataOf(reconciler.read(held)) } };
};

const metadataOf = ({ ref, generation, finalizers }: Resource) => ({ ref, generation, finalizers });

/** Void if the object has changed since it was read. */
export const writeMetadata = ({ deps, reconciler, object }: Reconciliation, change: object): Promise<KubeObject> =>
  deps.kube.mergePatch(reconciler.kind.type, refOf(object), {
    metadata: { resourceVersion: object.metadata.resourceVersion, ...change },
  });
