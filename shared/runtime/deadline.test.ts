import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { withLimits } from '#shared/runtime/deadline.ts';

/** Ends with the name of the cause. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<string>((resolve) => {
    const end = () => resolve((signal.reason as Error).name);
    if (signal.aborted) end();
    signal.addEventListener('abort', end);
  });

describe('withLimits', () => {
  it('aborts at the timeout', async () => {
    expect(await withLimits({ timeoutMs: 10 }, untilAborted)).toBe('TimeoutError');
  });

  it('aborts with the given signal, also with one that was already aborted', async () => {
    expect(await withLimits({ signal: AbortSignal.abort() }, untilAborted)).toBe('AbortError');
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 10);
    expect(await withLimits({ signal: stop.signal, timeoutMs: 60_000 }, untilAborted)).toBe('AbortError');
  });

  it('leaves no timer or listener behind, whether the work succeeds or fails', async () => {
    const { signal } = new AbortController();
    expect(await withLimits({ signal, timeoutMs: 60_000 }, async () => 'done')).toBe('done');
    await expect(withLimits({ signal }, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
