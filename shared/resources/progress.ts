// Merges a progress report into the state of an image. Reports may be late, repeated or out of order; status only moves forward.
import { type Filled, type ImageState, isFinal, type TransferState } from '#shared/populate/filled.ts';
import { progressOf, reportedState } from '#shared/populate/state.ts';
import { redact } from '#shared/runtime/redact.ts';
import type { TransferProgress } from '#shared/transfer/progress.ts';

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
