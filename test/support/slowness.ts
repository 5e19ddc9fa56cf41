// How much slower this machine is just now than one that does nothing else: for promises in seconds, held on machines that are busy.
import { spawnSync } from 'node:child_process';

/** Milliseconds that a program which does nothing takes at most on a quiet machine. */
const usualMs = 80;

/** At least 1. Measured when it is called: call it right behind what is measured, and divide that by it. */
export const slowness = (): number => {
  const begun = performance.now();
  spawnSync(process.execPath, ['-e', '0']);
  return Math.max(1, (performance.now() - begun) / usualMs);
};
