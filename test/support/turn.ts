// One file of tests at a time, of all processes of this machine: for ports that a program cannot be told to change.
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lockDataDir } from '#local-cluster/lock.ts';
import { Conflict } from '#shared/runtime/errors.ts';

const longestMs = 300_000;

/** Waits for the turn, and gives how to hand it on. Of a process that died it is taken. Throws Conflict after five minutes. */
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
