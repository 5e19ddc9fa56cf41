import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type QueueAnswer, verdictOf } from '#infra/workers/r2-notifications/notify.ts';

const answered = (status: number, more: Partial<Extract<QueueAnswer, { kind: 'answered' }>> = {}): QueueAnswer => ({
  kind: 'answered',
  status,
  message: '',
  ...more,
});

describe('a message', () => {
  it.each([200, 202, 204])('is acknowledged after %i', (status) => {
    expect(verdictOf(answered(status), 1, 5)).toEqual({ do: 'ack' });
  });

  it.each([400, 413, 414, 415, 422])('that is rejected with %i would be rejected again', (status) => {
    expect(verdictOf(answered(status, { message: 'no notification' }), 1, 5)).toEqual({
      do: 'bury',
      reason: `HTTP ${status}: no notification`,
    });
  });

  it.each([301, 401, 403, 404, 405, 408, 425, 429, 500, 502, 503, 504, 530])(
    'is retried after %i, since the cause may be corrected',
    (status) => {
      expect(verdictOf(answered(status), 1, 5)).toEqual({ do: 'retry', afterSeconds: 5, reason: `HTTP ${status}` });
    },
  );

  it('is retried when the server is unreachable', () => {
    expect(verdictOf({ kind: 'unreachable', message: 'away' }, 1, 5)).toEqual({
      do: 'retry',
      afterSeconds: 5,
      reason: 'away',
    });
  });

  it('is retried with increasing delays of at most a quarter of an hour', () => {
    const pauses = [1, 2, 3, 4, 8, 9, 100].map((attempts) => verdictOf(answered(503), attempts, 5));
    expect(pauses.map((verdict) => verdict.do === 'retry' && verdict.afterSeconds)).toEqual([
      5, 10, 20, 40, 640, 900, 900,
    ]);
  });

  it('waits for the requested time', () => {
    expect(verdictOf(answered(503, { retryAfter: '60' }), 1, 5)).toMatchObject({ afterSeconds: 60 });
    expect(verdictOf(answered(503, { retryAfter: '3' }), 3, 5)).toMatchObject({ afterSeconds: 20 });
    expect(verdictOf(answered(503, { retryAfter: 'Fri, 27 Nov 2026 00:00:00 GMT' }), 1, 5)).toMatchObject({
      afterSeconds: 5,
    });
  });

  it('gets a delay that the queue accepts, whatever the answer says', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 999 }), fc.nat(1000), fc.nat(900), fc.string(), (...given) => {
        const [status, attempts, baseSeconds, retryAfter] = given;
        const verdict = verdictOf(answered(status, { retryAfter }), attempts, baseSeconds);
        if (verdict.do !== 'retry') return;
        expect(verdict.afterSeconds).toBeGreaterThanOrEqual(0);
        expect(verdict.afterSeconds).toBeLessThanOrEqual(900);
      }),
    );
  });
});
