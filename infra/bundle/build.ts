// Each function as one file, with what it loads later beside it. Called by `npm run build`, the images and tests.
import { readdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { type BuildOptions, type Metafile, build } from 'esbuild';
import { type Workers, functionPlugin, lazyPackages, workerName } from '#infra/bundle/plugin.ts';
import { launcher } from '#infra/bundle/launcher.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Where `npm run build` leaves them. */
export const bundleDir = join(root, 'dist', 'functions');

export interface Bundle {
  readonly name: string;
  /** A function, a worker thread's file, or a package that is loaded late. */
  readonly role: 'function' | 'worker' | 'lazy';
  readonly bytes: number;
  /** Path of each source in it, from the root of the repository, and the bytes it takes up. */
  readonly inputs: Readonly<Record<string, number>>;
}

/** Every folder under functions with an entry point. */
export const listFunctions = async (): Promise<readonly string[]> => {
  const files = await readdir(join(root, 'functions'), { recursive: true });
  return files.flatMap((file) => /^([\w-]+)\/index\.ts$/.exec(file)?.[1] ?? []).toSorted();
};

/** Empties `outDir` and fills it: the same sources give the same bytes. Throws on what cannot be bundled. */
export const buildBundles = async (outDir: string = bundleDir): Promise<readonly Bundle[]> => {
  await rm(outDir, { recursive: true, force: true });
  const names = await listFunctions();
  const workers: Workers = new Set();
  const functions = await Promise.all(
    names.map((name) => bundle({ name, role: 'function', outDir, workers, entry: `functions/${name}/index.ts` })),
  );
  const more = await Promise.all([
    ...[...workers].map((path) => bundle({ name: workerName(path), role: 'worker', outDir, workers, entry: path })),
    ...Object.entries(lazyPackages).map(([of, name]) => bundle({ name, role: 'lazy', outDir, workers, package: of })),
  ]);
  await writeFile(join(outDir, 'start.mjs'), launcher(names));
  return [...functions, ...more];
};

interface Wanted extends Pick<Bundle, 'name' | 'role'> {
  readonly outDir: string;
  readonly workers: Workers;
  readonly entry?: string;
  readonly package?: string;
}

const bundle = async ({ name, role, outDir, workers, ...of }: Wanted): Promise<Bundle> => {
  const input: BuildOptions =
    of.entry === undefined
      ? { stdin: { contents: await reExport(of.package ?? ''), resolveDir: root } }
      : { entryPoints: [of.entry] };
  const { metafile } = await build({
    ...input,
    ...common,
    outfile: join(outDir, `${name}.mjs`),
    plugins: [functionPlugin(workers)],
  });
  return { name, role, ...contentOf(metafile) };
};

/** By name: what a CommonJS package exports is not known to esbuild. */
const reExport = async (name: string): Promise<string> => {
  const exported = Object.keys((await import(name)) as object).filter(
    (one) => !['default', 'module.exports'].includes(one),
  );
  return `export const { ${exported.join(', ')} } = require('${name}');`;
};

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  // Whitespace and syntax only: names of classes reach logs and statuses.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'silent',
  // Optional companions of `ws` and `debug`, which are not installed.
  external: ['utf-8-validate', 'bufferutil', 'supports-color'],
  banner: { js: "import{createRequire as requireFrom}from'node:module';const require=requireFrom(import.meta.url);" },
} as const satisfies BuildOptions;

const contentOf = ({ outputs }: Metafile): Pick<Bundle, 'bytes' | 'inputs'> => {
  const output = Object.values(outputs)[0];
  const inputs = Object.entries(output?.inputs ?? {}).map(
    ([path, { bytesInOutput }]) => [path, bytesInOutput] as const,
  );
  return { bytes: output?.bytes ?? 0, inputs: Object.fromEntries(inputs) };
};
