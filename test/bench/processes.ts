// What processes use, read from /proc. Called by benchmarks that measure a process from outside.
import { readFileSync } from 'node:fs';

/** Clock ticks of /proc per second; the same on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** Memory resident now, in MiB, of all processes together. */
export const residentMiB = (pids: readonly number[]): number =>
  pids.map((pid) => statusKiB(pid, 'VmRSS')).reduce((sum, kib) => sum + kib, 0) / 1024;

/** Processor time used so far, in seconds, of all processes together. */
export const cpuSeconds = (pids: readonly number[]): number => {
  const ticks = pids.map((pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return Number(fields[11]) + Number(fields[12]);
  });
  return ticks.reduce((sum, count) => sum + count, 0) / ticksPerSecond;
};

const statusKiB = (pid: number, field: string): number => {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(found?.[1] ?? Number.NaN);
};
