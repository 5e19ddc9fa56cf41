// Prometheus' own check of metrics and alerts. Extracted from Debian's package, which is not installed because it would start a server.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '#shared/runtime/errors.ts';

const cacheDir = join(import.meta.dirname, '../../node_modules/.cache');
const cached = join(cacheDir, 'promtool');

const unpack = (): void => {
  mkdirSync(cacheDir, { recursive: true });
  const folder = mkdtempSync(join(cacheDir, 'prometheus-'));
  try {
    execFileSync('apt-get', ['download', 'prometheus'], { cwd: folder, stdio: 'pipe' });
    const [file = ''] = readdirSync(folder);
    execFileSync('dpkg-deb', ['-x', file, 'root'], { cwd: folder, stdio: 'pipe' });
    renameSync(join(folder, 'root/usr/bin/promtool'), cached);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Its path; `undefined` if it is not available, which was then reported. */
export const findPromtool = (): string | undefined => {
  if (spawnSync('promtool', ['--version'], { stdio: 'ignore' }).error === undefined) return 'promtool';
  try {
    if (!existsSync(cached)) unpack();
    return cached;
  } catch (error) {
    console.warn(`skipped: promtool is missing (apt-get update; Debian has it in prometheus): ${messageOf(error)}`);
    return undefined;
  }
};
