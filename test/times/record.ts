// In each worker of vitest, where `npm run test:times` is who started it: what the file that just ended took, as a line of `BULLION_TIMES`.
import { appendFileSync, readFileSync, readdirSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, expect } from 'vitest';

/** What a process and all that it started took, from the beginning. */
interface Taken {
  readonly wall: number;
  readonly own: number;
  readonly children: number;
}

const ticksPerSecond = 100;

/** Fields of /proc/<pid>/stat after the name, which may have spaces: state is the first. */
const statOf = (pid: number | string): readonly string[] => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    // It ended meanwhile.
    return [];
  }
};
const sum = (fields: readonly string[], from: number): number =>
  (Number(fields[from] ?? 0) + Number(fields[from + 1] ?? 0)) / ticksPerSecond;

/** Seconds of those that still run, and of theirs; the ended ones are in the fields of who waited for them. */
const ofRunning = (parent: number): number =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => ({ pid: Number(pid), fields: statOf(pid) }))
    .filter(({ fields }) => Number(fields[1]) === parent)
    .reduce((all, { pid, fields }) => all + sum(fields, 11) + sum(fields, 13) + ofRunning(pid), 0);

const taken = (): Taken => {
  const fields = statOf(process.pid);
  return { wall: performance.now() / 1000, own: sum(fields, 11), children: sum(fields, 13) + ofRunning(process.pid) };
};

/** Where files share a worker, what those before took: on the process, since each file has its own modules. */
const known = process as unknown as { bullionTaken?: Taken };

afterAll(() => {
  const now = taken();
  const before = known.bullionTaken ?? { wall: 0, own: 0, children: 0 };
  known.bullionTaken = now;
  const times = {
    file: relative(process.cwd(), expect.getState().testPath ?? ''),
    wall: now.wall - before.wall,
    own: now.own - before.own,
    children: now.children - before.children,
  };
  appendFileSync(process.env['BULLION_TIMES'] ?? '', `${JSON.stringify(times)}\n`);
});
