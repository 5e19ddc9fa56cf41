// Bundles as images contain them, made once for all tests that run them, and again when a source has changed.
import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Bundle, buildBundles, listEntries } from '#infra/bundle/build.ts';

export interface TestBundles {
  readonly dir: string;
  readonly bundles: readonly Bundle[];
}

/** What the inputs of a bundle do not include: versions of packages, and how it is made. */
const others = ['package-lock.json', 'infra/bundle/build.ts', 'infra/bundle/plugin.ts', 'infra/bundle/late-schemas.ts'];
/** What Jobs run in tests. */
export const transferJobProgram = resolve(process.env['BULLION_TRANSFER_JOB'] ?? 'functions/transfer-job/index.ts');

const recordName = 'bundles.json';

/** What a folder was made of. `begun`: ms since 1970. */
interface Made {
  readonly begun: number;
  readonly bundles: readonly Bundle[];
}

/** Those in `dir` unless a source is newer: making them again takes seconds. */
const readCurrent = async (dir: string, names: readonly string[]): Promise<readonly Bundle[] | undefined> => {
  try {
    const { begun, bundles } = JSON.parse(await readFile(join(dir, recordName), 'utf8')) as Made;
    const made = bundles.flatMap(({ name, role }) => (role === 'function' ? [name] : []));
    if (made.toSorted().join() !== names.toSorted().join()) return undefined;
    // Inputs with a colon are of Node, or of the plugin.
    const inputs = bundles.flatMap((bundle) => Object.keys(bundle.inputs)).filter((path) => !path.includes(':'));
    const sources = await Promise.all([...new Set([...others, ...inputs])].map((path) => stat(path)));
    return sources.every(({ mtimeMs }) => mtimeMs < begun) ? bundles : undefined;
  } catch {
    return undefined;
  }
};

/** `only`: a part of what images can start, in a folder of its own. Default: all. Replaced file by file, so that a concurrent run always finds each. */
export const ensureBundles = async (folder: string, only?: readonly string[]): Promise<TestBundles> => {
  const dir = resolve('node_modules/.cache', folder);
  const current = await readCurrent(dir, only ?? Object.keys(await listEntries()));
  if (current !== undefined) return { dir, bundles: current };
  const made = `${dir}-${process.pid}`;
  const begun = Date.now();
  const bundles = await buildBundles(made, only);
  const record: Made = { begun, bundles };
  await writeFile(join(made, recordName), JSON.stringify(record));
  await mkdir(dir, { recursive: true });
  const files = (await readdir(made)).toSorted(
    (one, other) => Number(one === recordName) - Number(other === recordName),
  );
  for (const file of files) await rename(join(made, file), join(dir, file));
  await rm(made, { recursive: true });
  return { dir, bundles };
};
