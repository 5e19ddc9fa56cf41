// Runs before any test: installs programs that tests need, if possible. Tests of missing programs are skipped with a message.
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { buildBundles } from '#infra/bundle/build.ts';
import { ensurePrograms, qemuImg, thisHost } from '#infra/local/system-programs.ts';
import { messageOf } from '#shared/runtime/errors.ts';

const programs = [
  qemuImg,
  { program: 'xz', package: 'xz-utils' },
  { program: 'zstd', package: 'zstd' },
  { program: 'xorriso', package: 'xorriso' },
  { program: 'docker-registry', package: 'docker-registry' },
  { program: '/usr/lib/debian-installer/images/12/amd64/text', package: 'debian-installer-12-netboot-amd64' },
];

/** The program of transfer Jobs (`vitest.config.ts`). Replaced file by file, so that a concurrent run always finds each. */
const bundleJobs = async (): Promise<void> => {
  const place = resolve('node_modules/.cache/bundles');
  const made = `${place}-${process.pid}`;
  await buildBundles(made, ['transfer-job']);
  await mkdir(place, { recursive: true });
  for (const file of await readdir(made)) await rename(join(made, file), join(place, file));
  await rm(made, { recursive: true });
};

const setup = async (): Promise<void> => {
  const host = thisHost(process.env['PATH'] ?? '');
  await ensurePrograms(programs, console.warn, host).catch((error: unknown) =>
    console.warn(`tests that need more than is installed are skipped: ${messageOf(error)}`),
  );
  await bundleJobs();
};
export default setup;
