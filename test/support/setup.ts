// Runs before any test: installs programs that tests need, if possible. Tests of missing programs are skipped with a message.
import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
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

/** Where the program of transfer Jobs is (`vitest.config.ts`), and what it was made of. */
const place = resolve('node_modules/.cache/bundles');
const sourcesFile = join(place, 'sources.json');
/** Not told by a bundle: its packages' versions, and how it is made. */
const others = ['package-lock.json', 'infra/bundle/build.ts', 'infra/bundle/plugin.ts', 'infra/bundle/late-schemas.ts'];

/** Whether no source is newer: making it anew is a third of the start of a single file. */
const isCurrent = async (): Promise<boolean> => {
  try {
    const { mtimeMs: made } = await stat(sourcesFile);
    const sources = JSON.parse(await readFile(sourcesFile, 'utf8')) as readonly string[];
    return (await Promise.all(sources.map((path) => stat(path)))).every(({ mtimeMs }) => mtimeMs < made);
  } catch {
    return false;
  }
};

/** Replaced file by file, so that a concurrent run always finds each. */
const bundleJobs = async (): Promise<void> => {
  if (await isCurrent()) return;
  const made = `${place}-${process.pid}`;
  const bundles = await buildBundles(made, ['transfer-job']);
  const inputs = bundles.flatMap((bundle) => Object.keys(bundle.inputs));
  // Others are of Node, or of the plugin.
  const sources = [...others, ...inputs.filter((path) => !path.includes(':'))];
  await writeFile(join(made, basename(sourcesFile)), JSON.stringify(sources));
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
