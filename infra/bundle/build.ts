// Bundles each function into one file, with separate files for lazily loaded modules. Called by `npm run build`, package.ts, the images and tests.
import { readdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { basename, join } from 'node:path';
import { type BuildOptions, type Metafile, build } from 'esbuild';
import { type Workers, functionPlugin, lazyPackages, reExported, workerName } from '#infra/bundle/plugin.ts';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** Output directory of `npm run build`. */
export const bundleDir = join(root, 'dist', 'functions');

export interface Bundle {
  readonly name: string;
  /** A function, a file of a worker thread, a lazily loaded package, or a tool for building images. */
  readonly role: 'function' | 'worker' | 'lazy' | 'tool';
  readonly bytes: number;
  /** Paths of its sources, relative to the root of the repository, and their bytes in the bundle. */
  readonly inputs: Readonly<Record<string, number>>;
}

/** Every folder under functions with an entry point. */
export const listFunctions = async (): Promise<readonly string[]> => {
  const files = await readdir(join(root, 'functions'), { recursive: true });
  return files.flatMap((file) => /^([\w-]+)\/index\.ts$/.exec(file)?.[1] ?? []).toSorted();
};

/** Every function in one process. */
const single = 'single';

/** What an image of the functions can start, by name. */
export const listEntries = async (): Promise<Readonly<Record<string, string>>> => ({
  ...Object.fromEntries((await listFunctions()).map((name) => [name, `functions/${name}/index.ts`])),
  [single]: 'infra/single/index.ts',
});

/** Empties `outDir` and fills it; reproducible. `only`: a part of what images can start. Default: all. Throws if something cannot be bundled. */
export const buildBundles = async (
  outDir: string = bundleDir,
  only?: readonly string[],
): Promise<readonly Bundle[]> => {
  await rm(outDir, { recursive: true, force: true });
  const entries = Object.entries(await listEntries()).filter(([name]) => only?.includes(name) ?? true);
  const workers: Workers = new Set();
  const functions = await bundleAll(
    entries.map(([name, path]) => ({ name, role: 'function', path })),
    { outDir, workers },
  );
  const more = await bundleAll(
    [...loadedLate(workers), { name: 'code-cache', role: 'tool', path: 'infra/bundle/code-cache/main.ts' }],
    { outDir, workers },
  );
  await writeFile(join(outDir, 'start.mjs'), launcher(entries.map(([name]) => name)));
  return [...functions, ...more];
};

export const loadedLate = (workers: Workers): readonly Entry[] => [
  ...[...workers].map((path) => ({ name: workerName(path), role: 'worker' as const, path })),
  ...Object.entries(lazyPackages).map(([of, name]) => ({ name, role: 'lazy' as const, path: `${reExported}${of}` })),
];

/** What becomes one file: `path` relative to the root of the repository. */
interface Entry extends Pick<Bundle, 'name' | 'role'> {
  readonly path: string;
}

/** One build with many entry points reads each source once; the outputs share nothing. */
export const bundleAll = async (
  entries: readonly Entry[],
  {
    outDir,
    workers,
    target = 'node24',
  }: { readonly outDir: string; readonly workers: Workers; readonly target?: string },
): Promise<readonly Bundle[]> => {
  const { metafile } = await build({
    ...common,
    target,
    entryPoints: entries.map(({ name, path }) => ({ in: path, out: name })),
    outdir: outDir,
    outExtension: { '.js': '.mjs' },
    plugins: [functionPlugin(workers)],
  });
  return entries.map(({ name, role }) => ({ name, role, ...contentOf(metafile, `${name}.mjs`) }));
};

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  format: 'esm',
  // Only whitespace and syntax: names of classes appear in logs and statuses.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'silent',
  // Optional dependencies of `ws` and `debug`, which are not installed.
  external: ['utf-8-validate', 'bufferutil', 'supports-color'],
  // By default zod generates code for each schema, which pays off only after more requests than most instances handle.
  // `global`, since a package may declare a variable named `globalThis`.
  banner: {
    js: "global.__zod_globalConfig={jitless:true};import{createRequire as requireFrom}from'node:module';const require=requireFrom(import.meta.url);",
  },
} as const satisfies BuildOptions;

const contentOf = ({ outputs }: Metafile, file: string): Pick<Bundle, 'bytes' | 'inputs'> => {
  const output = Object.entries(outputs).find(([path]) => basename(path) === file)?.[1];
  const inputs = Object.entries(output?.inputs ?? {}).map(
    ([path, { bytesInOutput }]) => [path, bytesInOutput] as const,
  );
  return { bytes: output?.bytes ?? 0, inputs: Object.fromEntries(inputs) };
};

// The entry point of an image: runs the function in its first argument.

/** Source of `start.mjs`. The names are fixed when the image is built, so that an argument cannot refer to another file. */
const launcher = (names: readonly string[]): string => `// Made by infra/bundle. node start.mjs <function>
const names = ${JSON.stringify(names)};
const name = process.argv[2];
if (!names.includes(name)) {
  process.stderr.write(\`start: \${name ?? 'nothing'} is no function of this image; it has \${names.join(', ')}\\n\`);
  process.exit(64);
}
await import(\`./\${name}.mjs\`);
`;
