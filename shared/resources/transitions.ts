// Reports of a change of state: Kubernetes Events for users, CloudEvents for programs. Pure; called by the reconciler.
import { createHash } from 'node:crypto';
import type { PolicyVersionEventType, VersionEventType } from '#events/build.ts';
import type { KubeEvent } from '#shared/api/foreign/core.ts';
import { fieldManager } from '#shared/api/names.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import { contentWarning } from '#shared/populate/loss.ts';
import { type Filled, type ImageState, isFinal, isRetryDue } from '#shared/populate/filled.ts';

/** An additional CloudEvent about a version; best effort, like all notes. */
export type VersionNote =
  | { readonly of: 'cron'; readonly type: VersionEventType; readonly name: string }
  | {
      readonly of: 'policy';
      readonly type: PolicyVersionEventType;
      readonly name: string;
      /** Default: every channel. */
      readonly channel: string | undefined;
    };

export interface Note {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  /** Distinguishes this occurrence from others of the same object; a repetition has the same value. */
  readonly occurrence: string;
  readonly version?: VersionNote | undefined;
}

/** Maximal length of an Event's message in Kubernetes. */
const maxMessageLength = 1000;

/** The Events of one step. */
export const notesOf = (before: ImageState, after: ImageState): readonly Note[] => {
  const run = `${after.handledRetryToken ?? ''}/${after.failures}`;
  const notes: Note[] = [...contentNotes(before, after, run)];
  if (after.failures > before.failures && after.lastFailure !== undefined && after.phase !== 'Failed') {
    const { reason, message } = after.lastFailure;
    notes.push({ type: 'Warning', reason, message, occurrence: `attempt/${after.failures}` });
  }
  if (after.phase === before.phase) return notes;
  if (after.phase === 'Failed') {
    notes.push({ type: 'Warning', reason: after.reason, message: after.message, occurrence: `failed/${run}` });
  }
  if (after.phase === 'Available') {
    const from = after.servedFrom === undefined ? '' : `; its bytes came from ${after.servedFrom}`;
    notes.push({ type: 'Normal', reason: 'Ready', message: `${after.message}${from}`, occurrence: `ready/${run}` });
  }
  return notes;
};

/** For content that was made again after a loss: it differs, or cannot be compared. */
const contentNotes = (before: ImageState, after: ImageState, run: string): readonly Note[] => {
  const warning = contentWarning(after);
  return warning === undefined || warning.message === contentWarning(before)?.message
    ? []
    : [{ type: 'Warning', ...warning, occurrence: `content/${run}` }];
};

/** The Event of a note. Its name is derived from object and occurrence, so that a repetition creates no second one. `now` is RFC 3339. */
export const toKubeEvent = (ref: ObjectRef, note: Note, now: string): KubeEvent => {
  const digest = createHash('sha256').update(`${ref.uid}/${note.reason}/${note.occurrence}`).digest('hex').slice(0, 16);
  const namespace = ref.namespace ?? 'default';
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${ref.name.slice(0, 230)}.${digest}`, namespace },
    involvedObject: { ...ref, namespace },
    reason: note.reason,
    message: note.message.slice(0, maxMessageLength),
    type: note.type,
    count: 1,
    firstTimestamp: now,
    lastTimestamp: now,
    source: { component: fieldManager },
  };
};

/** Identifies the final transition of an image, as recorded in its status once announced; `undefined` before it. */
export const announcementOf = ({ generation }: Filled, state: ImageState): string | undefined =>
  isFinal(state) ? `${state.phase}/${generation}/${state.failures}/${state.handledRetryToken ?? ''}` : undefined;

/** Whether nothing is left to do for an image until its children or its spec change. */
export const isSettled = (image: Filled): boolean =>
  !image.deleting &&
  isFinal(image.state) &&
  !isRetryDue(image) &&
  announcementOf(image, image.state) === image.state.announced;
