// Common behaviour of objects whose volume is filled, images and volumes: when they are settled, what is reported, and the meaning of a
// failure.
import type { ObjectRef, Owner } from '#shared/api/object.ts';
import type { PlanContext } from '#shared/populate/actions.ts';
import {
  type Filled,
  type ImageState,
  initialState,
  isFinal,
  isRetryDue,
  type TransferState,
} from '#shared/populate/filled.ts';
import { failedState, progressOf, reportedState, restingState, waitingState } from '#shared/populate/state.ts';
import type { Reconciler } from './reconciler.ts';
import { announcementOf, isSettled, notesOf } from './transitions.ts';
import { type AppError } from '#shared/runtime/errors.ts';
import { done, failed, type Outcome, waiting } from '#shared/runtime/outcome.ts';
import { redact } from '#shared/runtime/redact.ts';
import type { TransferProgress } from '#shared/transfer/report.ts';
import { apiRefusal, type Refusal } from '#shared/resources/reconciler.ts';

// Merges a progress report into the state of an image. Reports may be late, repeated or out of order; status only moves forward.

/** Milliseconds between two writes. */
const writeInterval = 2000;

/** The state with the report; `undefined` if there is no change, or too soon after the last one. `now` is ms since the epoch. */
export const foldProgress = (image: Filled, report: TransferProgress, now: number): ImageState | undefined => {
  const { state } = image;
  if (image.deleting || isFinal(state) || state.phase === 'Snapshotting') return undefined;
  if (!isOfPresentJob(state, report) || !isNewer(state.transfer, report)) return undefined;
  const isNews = report.inspection !== undefined && state.inspection?.virtualSize === undefined;
  if (!isNews && isTooSoon(state.transfer, now)) return undefined;
  return withReport(image, report, now);
};

/** Pods are named after their Job. */
const isOfPresentJob = ({ children }: ImageState, { run }: TransferProgress): boolean =>
  children?.job !== undefined && run.startsWith(`${children.job}-`);

const isNewer = (known: TransferState | undefined, report: TransferProgress): boolean => {
  if (known === undefined) return true;
  if (known.run === report.run) return report.sequence > known.sequence;
  return Date.parse(report.startedAt) > Date.parse(known.startedAt);
};

const isTooSoon = (known: TransferState | undefined, now: number): boolean =>
  known !== undefined && Math.abs(now - Date.parse(known.reportedAt)) < writeInterval;

const withReport = (image: Filled, report: TransferProgress, now: number): ImageState => {
  const { state } = image;
  const { inspection, note, ...rest } = report;
  const isSameRun = state.transfer?.run === report.run;
  // A run that reports has started, even if its Job does not report it yet. A new run that reports before the failure of the last one was
  // counted belongs to the same attempt.
  const attempts = Math.max(state.attempts, isSameRun ? 1 : state.attemptsFailed + 1);
  const percent = progressOf(report);
  const next: ImageState = {
    ...state,
    inspection: inspection ?? state.inspection,
    progress: attempts > state.attempts ? percent : Math.max(state.progress, percent),
    attempts,
    deadline: undefined,
    nextAttemptTime: undefined,
  };
  return reportedState(image, next, {
    ...rest,
    ...(note === undefined ? {} : { note: redact(note) }),
    reportedAt: new Date(now).toISOString(),
  });
};

type Life = Pick<
  Reconciler<never, Filled>,
  | 'isUsable'
  | 'isSettled'
  | 'isRetryDue'
  | 'outcomeOf'
  | 'notesOf'
  | 'announcementOf'
  | 'failed'
  | 'limited'
  | 'refused'
  | 'revived'
  | 'fold'
>;

const outcomeOf = ({ phase, reason, message }: ImageState): Outcome => {
  if (phase === 'Available') return done;
  return phase === 'Failed' ? failed(reason, message) : waiting(message);
};

const refused = (resource: Filled, error: AppError, context: PlanContext): ImageState => {
  const step = apiRefusal(error);
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

/** A worker may fail with the reason of a refusal, after something was created: it would fail again. */
const revived = ({ state }: Filled): ImageState => {
  const { phase, reason, lastFailure, failures, handledRetryToken } = state;
  const isRefusal = Object.values<string>(refusals).includes(reason) && lastFailure?.reason !== reason;
  const wasRefused = phase === 'Failed' && isRefusal;
  return wasRefused ? { ...initialState, failures, handledRetryToken } : state;
};

export const fillable: Life = {
  isUsable: ({ phase }) => phase === 'Available',
  isSettled,
  isRetryDue,
  outcomeOf,
  notesOf,
  announcementOf,
  failed: ({ state, retryToken }, { reason, message }: Refusal) => ({
    ...failedState(state, reason, message),
    handledRetryToken: retryToken,
  }),
  limited: restingState,
  refused,
  revived,
  fold: foldProgress,
};

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
