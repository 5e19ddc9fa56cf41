// The time a transfer has: over, or cancelled from outside, everything in it ends.
import { setMaxListeners } from 'node:events';
import { TransferError } from '#shared/transfer/fault.ts';

/** setTimeout cannot count further. */
const longestTimerMs = 2 ** 31 - 1;

/** Runs `work` with a signal that is aborted after `seconds`, with `outer`, and once the work is over. Throws what the work throws. */
export const withDeadline = async <T>(
  seconds: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const inner = new AbortController();
  // Each read waits on the signal, and several are in flight.
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
    inner.abort(new TransferError('Cancelled', 'the transfer is over'));
  }
};
