// Common behaviour of objects whose volume is filled, images and volumes: when they are settled, what is reported, and the meaning of a
// failure.
import { type Filled, type ImageState, initialState, isFinal, isRetryDue } from '#shared/populate/filled.ts';
import { failedState, waitingState } from '#shared/populate/state.ts';
import type { Reconciler, Refusal } from '#shared/resources/reconciler.ts';
import { foldProgress } from '#shared/resources/progress.ts';
import { announcementOf, isSettled, notesOf } from '#shared/resources/transitions.ts';
import { type AppError, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, done, failed, waiting } from '#shared/runtime/outcome.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { Owner } from '#shared/api/owner.ts';
import type { PlanContext } from '#shared/populate/actions.ts';

type Life = Pick<
  Reconciler<never, Filled>,
  'isSettled' | 'isRetryDue' | 'outcomeOf' | 'notesOf' | 'announcementOf' | 'failed' | 'refused' | 'revived' | 'fold'
>;

const outcomeOf = ({ phase, reason, message }: ImageState): Outcome => {
  if (phase === 'Available') return done;
  return phase === 'Failed' ? failed(reason, message) : waiting(message);
};

const refused = (resource: Filled, error: AppError, context: PlanContext): ImageState => {
  const step = { reason: `Api${error.code}`, message: `refused: ${messageOf(error)}` };
  if (resource.deleting) return { ...resource.state, ...step, phase: 'Terminating' };
  const phase = isFinal(resource.state) ? 'Pending' : resource.state.phase;
  return waitingState(resource, resource.state, { phase, ...step }, context);
};

/** Failures before anything was created for an object. */
export const refusals = {
  spec: 'InvalidSpec',
  backend: 'BackendUnavailable',
  name: 'DisplayNameTaken',
  destination: 'DestinationTaken',
} as const;

const revived = ({ state }: Filled): ImageState => {
  const { phase, reason, failures, handledRetryToken } = state;
  const wasRefused = phase === 'Failed' && Object.values<string>(refusals).includes(reason);
  return wasRefused ? { ...initialState, failures, handledRetryToken } : state;
};

export const fillable: Life = {
  isSettled,
  isRetryDue,
  outcomeOf,
  notesOf,
  announcementOf,
  failed: ({ state, retryToken }, { reason, message }: Refusal) => ({
    ...failedState(state, reason, message),
    handledRetryToken: retryToken,
  }),
  refused,
  revived,
  fold: foldProgress,
};

/** Faults of a spec that bypassed admission, with the same messages. */
export const refusalOfFaults = ({ faults }: Filled): Refusal | undefined =>
  faults.length === 0
    ? undefined
    : { reason: refusals.spec, message: faults.map(({ field, message }) => `${field} ${message}`).join('; ') };

/** The field `what` uses the object store, but none is configured. */
export const noObjectStore = (what: string): Refusal => ({
  reason: refusals.spec,
  message: `${what} requires an object store, and this installation has none: an operator sets OBJECT_STORE_ENDPOINT`,
});

// Links objects with the same content, so that the end of one reconciles the others.

/** One of the kinds of things that objects wait for. */
export const contentGroupKind = 'Content';

/** `undefined` if its content is not known in advance. */
export const contentLinkOf = (
  { namespace = 'default' }: ObjectRef,
  content: string | undefined,
): Omit<Owner, 'uid'> | undefined =>
  content === undefined ? undefined : { groupKind: contentGroupKind, namespace, name: content };
