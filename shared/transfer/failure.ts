// Converts an error to a failed report: reason, whether to retry, a message without secrets; and limits the time of a transfer.
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';
import { redact } from '#shared/runtime/redact.ts';
import { isTransferError, TransferError } from '#shared/transfer/fault.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { type TransferFault, type TransferReport, maxReportBytes, transferFaults } from '#shared/transfer/report.ts';
import { setMaxListeners } from 'node:events';

export interface Failure {
  readonly reason: TransferFault;
  readonly message: string;
  readonly retryable: boolean;
  readonly sentNothing?: true;
}

const mostMessageChars = 1000;

const reasonOf = (error: unknown): TransferFault => {
  if (isTransferError(error)) return error.code;
  return error instanceof InvalidInput ? 'InvalidSpec' : 'InternalFault';
};

export const toFailure = (error: unknown): Failure => {
  const reason = reasonOf(error);
  const retryable = isTransferError(error) ? error.retryable : transferFaults[reason].retryable;
  const sent = isTransferError(error) && error.sentNothing ? { sentNothing: true as const } : {};
  return { reason, message: redact(messageOf(error)).slice(0, mostMessageChars), retryable, ...sent };
};

/** The report as a termination message: JSON within the size limit. */
export const serializeReport = (report: TransferReport): string => {
  const text = JSON.stringify(report);
  if (Buffer.byteLength(text) <= maxReportBytes || report.outcome === 'succeeded') return text;
  return serializeReport({ ...report, message: report.message.slice(0, Math.floor(report.message.length / 2)) });
};

const invalidSpec = (message: string): TransferReport => ({
  outcome: 'failed',
  reason: 'InvalidSpec',
  message: `the spec of the transfer is invalid: ${redact(message).slice(0, mostMessageChars)}`,
  retryable: transferFaults.InvalidSpec.retryable,
  receivedBytes: 0,
});

export type ParsedSpec =
  | { readonly spec: TransferSpec; readonly report?: never }
  | { readonly spec?: undefined; readonly report: TransferReport };

/** A spec from its JSON text, or a report that lists all its faults. */
export const parseSpec = (text: string): ParsedSpec => {
  try {
    const { data, error } = TransferSpec.safeParse(JSON.parse(text));
    if (data !== undefined) return { spec: data };
    return { report: invalidSpec(error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')) };
  } catch {
    return { report: invalidSpec('it is not JSON') };
  }
};

// Limits the time of a transfer: on timeout or cancellation everything in it is aborted.

/** Limit of setTimeout. */
const longestTimerMs = 2 ** 31 - 1;

/** Runs `work` with a signal that is aborted after `seconds`, with `outer`, and when the work has ended. Throws the error of the work. */
export const withDeadline = async <T>(
  seconds: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const inner = new AbortController();
  // Each read adds a listener to the signal, and several are in progress.
  setMaxListeners(0, inner.signal);
  const expire = () =>
    inner.abort(new TransferError('DeadlineExceeded', `the transfer took longer than its ${seconds} seconds`));
  const cancel = () => inner.abort(new TransferError('Cancelled', 'the transfer was cancelled'));
  const timer = setTimeout(expire, Math.min(seconds * 1000, longestTimerMs));
  if (outer.aborted) cancel();
  outer.addEventListener('abort', cancel, { once: true });
  try {
    return await work(inner.signal);
  } finally {
    clearTimeout(timer);
    outer.removeEventListener('abort', cancel);
    inner.abort(new TransferError('Cancelled', 'the transfer has ended'));
  }
};
