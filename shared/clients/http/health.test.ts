import { beforeEach, describe, expect, it } from 'vitest';
import { type HostHealth, createHostHealth } from '#shared/clients/http/health.ts';

const host = 'mirror.example';

describe('a host', () => {
  let time: number;
  let health: HostHealth;
  const fail = (times: number): void => {
    for (let count = 0; count < times; count += 1) health.failed(host);
  };
  beforeEach(() => {
    time = 1_000_000;
    health = createHostHealth(() => time);
  });

  it('is asked again after a failure or two', () => {
    fail(2);
    expect([health.waitMs(host), health.take(host), health.take(host)]).toEqual([0, 0, 0]);
  });

  it('is left alone after the third in a row, and others are not', () => {
    fail(3);
    expect([health.waitMs(host), health.waitMs('other.example')]).toEqual([30_000, 0]);
  });

  it.each([
    [4, 60_000],
    [7, 480_000],
    [8, 600_000],
    [50, 600_000],
  ])('is left alone for longer with every failure: after %d for %d ms', (failures, pause) => {
    fail(failures);
    expect(health.waitMs(host)).toBe(pause);
  });

  it('is then tried by one request alone, whose answer opens it for all', () => {
    fail(3);
    time += 30_000;
    expect(health.take(host)).toBe(0);
    expect(health.take(host)).toBe(60_000);
    health.answered(host);
    expect([health.take(host), health.take(host)]).toEqual([0, 0]);
  });

  it('is left alone for longer if that request fails, and tried by another one if it never reports', () => {
    fail(3);
    time += 30_000;
    health.take(host);
    time += 60_000;
    expect(health.take(host)).toBe(0);
    health.failed(host);
    expect(health.waitMs(host)).toBe(60_000);
  });

  it('is forgiven by any answer', () => {
    fail(2);
    health.answered(host);
    fail(2);
    expect(health.waitMs(host)).toBe(0);
  });
});
