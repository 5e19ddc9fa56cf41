import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createWorkQueue } from '#local-cluster/controllers/work-queue.ts';

describe('createWorkQueue', () => {
  it('never processes one key twice at a time, and runs once more when it is added meanwhile', async () => {
    let running = 0;
    let most = 0;
    let runs = 0;
    const queue = createWorkQueue({
      work: async () => {
        running += 1;
        runs += 1;
        most = Math.max(most, running);
        await sleep(20);
        running -= 1;
        return undefined;
      },
      onFailure: () => undefined,
    });
    queue.add('a');
    await sleep(5);
    for (let i = 0; i < 5; i += 1) queue.add('a');
    await sleep(80);
    await queue.stop();
    expect([most, runs]).toEqual([1, 2]);
  });

  it('retries after a failure with increasing delays, and resets them after a success', async () => {
    const times: number[] = [];
    const queue = createWorkQueue({
      work: () => {
        times.push(performance.now());
        return times.length < 4 ? Promise.reject(new Error('no')) : Promise.resolve(undefined);
      },
      onFailure: () => undefined,
      backOffMs: { first: 20, most: 1000 },
    });
    queue.add('a');
    await expect.poll(() => times.length).toBe(4);
    await sleep(50);
    await queue.stop();
    const pauses = times.slice(1).map((time, index) => Math.round(time - (times[index] ?? 0)));
    expect(times).toHaveLength(4);
    expect(pauses[0]).toBeGreaterThanOrEqual(19);
    expect(pauses[2]).toBeGreaterThanOrEqual(79);
  });

  it('keeps the earliest of several scheduled times', async () => {
    const seen: string[] = [];
    const queue = createWorkQueue({
      work: (key) => {
        seen.push(key);
        return Promise.resolve(undefined);
      },
      onFailure: () => undefined,
    });
    queue.addAfter('a', 10_000);
    queue.addAfter('a', 10);
    queue.addAfter('a', 10_000);
    await expect.poll(() => seen.length).toBe(1);
    await sleep(20);
    await queue.stop();
    expect(seen).toEqual(['a']);
  });
});
