// How much slower this machine is now than an idle one: for limits in seconds, tested on busy machines.
import { spawnSync } from 'node:child_process';

/** Milliseconds that an empty program takes at most on an idle machine. */
const usualMs = 80;

/** At least 1. Measured when it is called: call it right after the measured code, and divide by it. */
export const slowness = (): number => {
  const begun = performance.now();
  spawnSync(process.execPath, ['-e', '0']);
  return Math.max(1, (performance.now() - begun) / usualMs);
};
