// The writes that follow a decision: status, Kubernetes Events, the announcement. Called by the driver and by progress reports.
import { isDeepStrictEqual } from 'node:util';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { ImageState } from '#shared/backends/image.ts';
import { isoTime } from '#shared/backends/state.ts';
import type { ImageObject } from '#shared/resources/dialect.ts';
import type { DriverDeps, Pass } from '#shared/resources/driver.ts';
import { type Note, announcementOf, notesOf, toKubeEvent } from '#shared/resources/transitions.ts';
import { isConflict, messageOf } from '#shared/runtime/errors.ts';

/** Writes nothing when the status says `state` already. Conflict when the object has changed since it was read. `now` is RFC 3339. */
export const writeStatus = async (
  { deps, dialect, object, image }: Pass,
  state: ImageState,
  now: string,
): Promise<ImageObject> => {
  const status = dialect.toStatus(object, image, state, now);
  if (isDeepStrictEqual(status, object.status)) return object;
  return deps.kube.replace(dialect.kind.type, { ...object, status }, { subresource: 'status' });
};

/** Says what the step from the image's old state to `state` is worth telling. */
export const sayNotes = async ({ deps, image }: Pass, state: ImageState): Promise<void> => {
  for (const note of notesOf(image.state, state)) {
    // oxlint-disable-next-line no-await-in-loop
    await sayNote(deps, image.ref, note);
  }
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
 * Tells the outside of a final transition at least once: it is noted as told only after it was taken, and an image that has not told its
 * end is not settled. Gives whether nothing is left to tell.
 */
export const announceFinal = async (pass: Pass, state: ImageState, now: string): Promise<boolean> => {
  const { announce } = pass.deps;
  const announcement = announcementOf(pass.image, state);
  if (announce === undefined || announcement === undefined || announcement === state.announced) return true;
  if (!(await announce(pass.image, state))) return false;
  await writeStatus(pass, { ...state, announced: announcement }, now);
  return true;
};
