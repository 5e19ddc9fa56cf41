import { describe, expect, it } from 'vitest';
import { TransferError } from '#shared/transfer/fault.ts';
import { createPatience } from '#shared/transfer/patience.ts';

const flaky = new TransferError('SourceInterrupted', 'cut');

const setup = (retries: number, signal = new AbortController().signal) => {
  const waits: number[] = [];
  const patience = createPatience({
    retries,
    signal,
    onRetry: () => undefined,
    wait: async (ms) => void waits.push(ms),
    random: () => 1,
  });
  return { patience, waits };
};

describe('patience', () => {
  it('doubles its waits up to half a minute, then ends', async () => {
    const { patience, waits } = setup(9);
    for (let failure = 0; failure < 9; failure++) await patience.afterFailure(flaky);
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    await expect(patience.afterFailure(flaky)).rejects.toBe(flaky);
  });

  it('throws a permanent fault at once', async () => {
    const { patience, waits } = setup(9);
    const permanent = new TransferError('SourceNotFound', 'gone');
    await expect(patience.afterFailure(permanent)).rejects.toBe(permanent);
    expect(waits).toEqual([]);
  });

  it('waits as long as the server asks for, up to five minutes', async () => {
    const { patience, waits } = setup(9);
    await patience.afterFailure(new TransferError('SourceUnavailable', 'busy', { retryAfterSeconds: 60 }));
    await patience.afterFailure(new TransferError('SourceUnavailable', 'busy', { retryAfterSeconds: 86_400 }));
    expect(waits).toEqual([60_000, 300_000]);
  });

  it('is renewed by real progress, not by a trickle', async () => {
    const { patience, waits } = setup(1);
    await patience.afterFailure(flaky);
    patience.progressed(8 * 1024 * 1024);
    await patience.afterFailure(flaky);
    expect(waits).toEqual([500, 500]);
    patience.progressed(1000);
    await expect(patience.afterFailure(flaky)).rejects.toBe(flaky);
  });

  it('is renewed by progress over several connections', async () => {
    const { patience, waits } = setup(3);
    for (let cut = 0; cut < 30; cut++) {
      patience.progressed(3 * 1024 * 1024);
      await patience.afterFailure(flaky);
    }
    expect(Math.max(...waits)).toBe(2000);
  });

  it('ends with its signal', async () => {
    const controller = new AbortController();
    const { patience } = setup(9, controller.signal);
    controller.abort(new Error('enough'));
    await expect(patience.afterFailure(flaky)).rejects.toThrow('enough');
  });
});
