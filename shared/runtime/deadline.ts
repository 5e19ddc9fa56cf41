// Limits the duration of work. Unlike AbortSignal.timeout and AbortSignal.any, no timer or listener remains after the work.

export interface Limits {
  /** Milliseconds. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Aborts the work early. */
  readonly signal?: AbortSignal | undefined;
}

/** Runs `work` with a signal that fires at the timeout or with the given signal. Does not itself interrupt the work. */
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
