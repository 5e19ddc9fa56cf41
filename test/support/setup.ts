// Runs before any test: installs programs that tests need, if possible. Tests of missing programs are skipped with a message.
import { ensurePrograms, qemuImg, thisHost } from '#infra/local/system-programs.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { ensureBundles } from '#test/support/bundles.ts';

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
  // `vitest.config.ts` names its file.
  await ensureBundles('bundles', ['transfer-job']);
};
export default setup;
