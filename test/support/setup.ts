// Before any test: the programs that tests run, installed where that is possible. What stays missing skips its tests, with words.
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

const setup = async (): Promise<void> => {
  const host = thisHost(process.env['PATH'] ?? '');
  await ensurePrograms(programs, console.warn, host).catch((error: unknown) =>
    console.warn(`tests that need more than is installed are skipped: ${messageOf(error)}`),
  );
  // Transfer Jobs run what is shipped: from its sources each takes three times as long to start.
  const bundles = resolve('node_modules/.cache/bundles');
  await buildBundles(bundles);
  process.env['BULLION_TRANSFER_JOB'] = join(bundles, 'transfer-job.mjs');
};
export default setup;
