// Work that must end in time. Unlike AbortSignal.timeout and AbortSignal.any, nothing is kept once the work is over.

export interface Limits {
  /** Milliseconds; no limit when left out. */
  readonly timeoutMs?: number | undefined;
  /** Ends the work early. */
  readonly signal?: AbortSignal | undefined;
}

/** Runs `work` with a signal that fires when the time is up or the given signal fires. Does not itself cut the work short. */
export const withLimits = async <T>(limits: Limits, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
  const { timeoutMs, signal } = limits;
  const controller = new AbortController();
  const follow = () => controller.abort(signal?.reason);
  if (signal?.aborted === true) follow();
  signal?.addEventListener('abort', follow, { once: true });
  const expire = () => controller.abort(new DOMException(`no answer within ${timeoutMs} ms`, 'TimeoutError'));
  const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', follow);
  }
};
