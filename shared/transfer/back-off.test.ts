import { describe, expect, it } from 'vitest';
import { TransferError } from '#shared/transfer/fault.ts';
import { createBackOff } from '#shared/transfer/back-off.ts';

const flaky = new TransferError('SourceInterrupted', 'cut');

const setup = (retries: number, signal = new AbortController().signal) => {
  const waits: number[] = [];
  const backOff = createBackOff({
    retries,
    signal,
    onRetry: () => undefined,
    wait: async (ms) => void waits.push(ms),
    random: () => 1,
  });
  return { backOff, waits };
};

describe('the back-off', () => {
  it('doubles its delays up to half a minute, then ends', async () => {
    const { backOff, waits } = setup(9);
    for (let failure = 0; failure < 9; failure++) await backOff.afterFailure(flaky);
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    await expect(backOff.afterFailure(flaky)).rejects.toBe(flaky);
  });

  it('throws a permanent error at once', async () => {
    const { backOff, waits } = setup(9);
    const permanent = new TransferError('SourceNotFound', 'gone');
    await expect(backOff.afterFailure(permanent)).rejects.toBe(permanent);
    expect(waits).toEqual([]);
  });

  it('waits as long as the server asks, up to five minutes', async () => {
    const { backOff, waits } = setup(9);
    await backOff.afterFailure(new TransferError('SourceUnavailable', 'busy', { retryAfterSeconds: 60 }));
    await backOff.afterFailure(new TransferError('SourceUnavailable', 'busy', { retryAfterSeconds: 86_400 }));
    expect(waits).toEqual([60_000, 300_000]);
  });

  it('restarts after substantial progress, not after a few bytes', async () => {
    const { backOff, waits } = setup(1);
    await backOff.afterFailure(flaky);
    backOff.progressed(8 * 1024 * 1024);
    await backOff.afterFailure(flaky);
    expect(waits).toEqual([500, 500]);
    backOff.progressed(1000);
    await expect(backOff.afterFailure(flaky)).rejects.toBe(flaky);
  });

  it('restarts after progress over several connections', async () => {
    const { backOff, waits } = setup(3);
    for (let cut = 0; cut < 30; cut++) {
      backOff.progressed(3 * 1024 * 1024);
      await backOff.afterFailure(flaky);
    }
    expect(Math.max(...waits)).toBe(2000);
  });

  it('ends when its signal is aborted', async () => {
    const controller = new AbortController();
    const { backOff } = setup(9, controller.signal);
    controller.abort(new Error('enough'));
    await expect(backOff.afterFailure(flaky)).rejects.toThrow('enough');
  });
});
