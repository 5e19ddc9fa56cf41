// The writes that follow a decision: status, Kubernetes Events, the announcement. Called by the driver and by progress reports.
import { isDeepStrictEqual } from 'node:util';
import { buildVersionEvent } from '#events/build.ts';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import type { KubeObject, ObjectRef } from '#shared/api/object.ts';
import { isoTime } from '#shared/backends/state.ts';
import type { DrivenState } from '#shared/resources/driven.ts';
import type { DriverDeps, Pass } from '#shared/resources/driver.ts';
import { type Note, toKubeEvent } from '#shared/resources/transitions.ts';
import { isConflict, messageOf } from '#shared/runtime/errors.ts';

/** Writes nothing when the status says `state` already. Conflict when the object has changed since it was read. `now` is RFC 3339. */
export const writeStatus = async (
  { deps, driven, object, subject }: Pass,
  state: DrivenState,
  now: string,
): Promise<KubeObject> => {
  const status = driven.toStatus(object, subject, state, now);
  if (isDeepStrictEqual(status, (object as { readonly status?: unknown }).status)) return object;
  const next: KubeObject & { readonly status: object } = { ...object, status };
  return deps.kube.replace(driven.kind.type, next, { subresource: 'status' });
};

/** Says what the step from the object's old state to `state` is worth telling. */
export const sayNotes = async ({ deps, driven, subject }: Pass, state: DrivenState): Promise<void> => {
  for (const note of driven.notesOf(subject.state, state)) {
    // oxlint-disable-next-line no-await-in-loop
    await sayNote(deps, subject.ref, note);
    // oxlint-disable-next-line no-await-in-loop
    await tellVersion(deps, subject.ref, note);
  }
};

const tellVersion = async (
  { send, log, now }: DriverDeps,
  cron: ObjectRef,
  { version, reason, message, occurrence }: Note,
): Promise<void> => {
  if (version === undefined || send === undefined) return;
  const data = { cron, version: version.name, reason, message };
  const origin = { source: 'bullion.dev/golden', now: new Date(now()) };
  const { isDelivered } = await send(buildVersionEvent(version.type, data, occurrence, origin));
  if (!isDelivered) log.warn('event not sent', { type: version.type, version: version.name });
};

/** Events are for people: one that cannot be written is logged, and nothing waits for it. */
export const sayNote = async (deps: DriverDeps, about: ObjectRef, note: Note): Promise<void> => {
  try {
    await deps.kube.create(kubeEvents, toKubeEvent(about, note, isoTime(deps.now())));
  } catch (error) {
    // A conflict means that it was said before.
    if (!isConflict(error)) deps.log.warn('event not recorded', { reason: note.reason, error: messageOf(error) });
  }
};

/**
 * Tells the outside of a final transition at least once: it is noted as told only after it was taken, and an object that has not told its
 * end is not settled. Gives whether nothing is left to tell.
 */
export const announceFinal = async (pass: Pass, state: DrivenState, now: string): Promise<boolean> => {
  const { announce } = pass.deps;
  const announcement = pass.driven.announcementOf(pass.subject, state);
  if (announce === undefined || announcement === undefined || announcement === state.announced) return true;
  if (!(await announce(pass.subject, state, pass.driven.endingOf?.(pass.subject, state)))) return false;
  await writeStatus(pass, { ...state, announced: announcement }, now);
  return true;
};
