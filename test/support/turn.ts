// A lock between test files of all processes of this machine: for programs with fixed ports.
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lockDataDir } from '#local-cluster/lock.ts';
import { Conflict } from '#shared/runtime/errors.ts';

const longestMs = 300_000;

/** Waits for the lock, and returns how to release it. The lock of a dead process is taken over. Throws Conflict after five minutes. */
export const takeTurn = async (name: string): Promise<() => Promise<void>> => {
  const until = Date.now() + longestMs;
  for (;;) {
    try {
      return await lockDataDir(join(tmpdir(), `bullion-turn-${name}`));
    } catch (error) {
      if (!(error instanceof Conflict) || Date.now() > until) throw error;
      await delay(500);
    }
  }
};
