// Each function as one file, with what it loads later beside it. Called by `npm run build`, the images and tests.
import { cp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { basename, join } from 'node:path';
import { type BuildOptions, type Metafile, build } from 'esbuild';
import { type Workers, functionPlugin, lazyPackages, reExported, workerName } from '#infra/bundle/plugin.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Where `npm run build` leaves them. */
export const bundleDir = join(root, 'dist', 'functions');

export interface Bundle {
  readonly name: string;
  /** A function, a worker thread's file, a package that is loaded late, or what images are made with. */
  readonly role: 'function' | 'worker' | 'lazy' | 'tool';
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
  const functions = await bundleAll(
    names.map((name) => ({ name, role: 'function', path: `functions/${name}/index.ts` })),
    { outDir, workers },
  );
  const more = await bundleAll(
    [...loadedLate(workers), { name: 'code-cache', role: 'tool', path: 'infra/bundle/code-cache/main.ts' }],
    { outDir, workers },
  );
  await writeFile(join(outDir, 'start.mjs'), launcher(names));
  return [...functions, ...more];
};

const loadedLate = (workers: Workers): readonly Entry[] => [
  ...[...workers].map((path) => ({ name: workerName(path), role: 'worker' as const, path })),
  ...Object.entries(lazyPackages).map(([of, name]) => ({ name, role: 'lazy' as const, path: `${reExported}${of}` })),
];

/** Where `npm run package` leaves the command line. */
export const cliDir = join(root, 'dist', 'cli');

/** The command line as a package that needs no other: empties `outDir` and fills it with what `npm publish` takes. */
export const buildCli = async (outDir: string = cliDir): Promise<readonly Bundle[]> => {
  await rm(outDir, { recursive: true, force: true });
  const workers: Workers = new Set();
  // What people have installed may be older than what the functions run on.
  const target = 'node22';
  const main = await bundleAll([{ name: 'main', role: 'function', path: 'cli/main.ts' }], { outDir, workers, target });
  const late = await bundleAll(loadedLate(workers), { outDir, workers, target });
  await writeFile(join(outDir, 'bullion.mjs'), commandLauncher, { mode: 0o755 });
  await writeFile(join(outDir, 'package.json'), await cliPackage());
  for (const [from, to] of [
    ['LICENSE', 'LICENSE'],
    ['docs/cli.md', 'README.md'],
  ] as const)
    await cp(join(root, from), join(outDir, to));
  return [...main, ...late];
};

const cliPackage = async (): Promise<string> => {
  const { name, version, license } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as PackageFile;
  const bin = { bullion: 'bullion.mjs', 'kubectl-bullion': 'bullion.mjs' };
  const description = 'Golden images for virtual machines on Kubernetes, from the command line';
  return `${JSON.stringify({ name, version, description, license, type: 'module', bin, engines: { node: '>=22.15' } }, undefined, 2)}\n`;
};

interface PackageFile {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/** Node says of a version that is too old only which name a module lacks. What V8 compiled is kept for the next call. */
const commandLauncher = `#!/usr/bin/env node
import module from 'node:module';
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 15)) {
  process.stderr.write(\`bullion: Node \${process.versions.node} is too old: install Node 22.15 or newer\\n\`);
  process.exit(1);
}
module.enableCompileCache?.();
await import('./main.mjs');
`;

interface Entry extends Pick<Bundle, 'name' | 'role'> {
  readonly path: string;
}

/** One build of many entries reads each source once; nothing is shared between what comes out. */
const bundleAll = async (
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
  // Whitespace and syntax only: names of classes reach logs and statuses.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'silent',
  // Optional companions of `ws` and `debug`, which are not installed.
  external: ['utf-8-validate', 'bufferutil', 'supports-color'],
  // zod makes code for each schema it meets, which pays off after more requests than most instances see.
  // `global`, since a package may have a variable of its own named `globalThis`.
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

// The file an image starts with: runs the function its first argument names.

/** The text of `start.mjs`. Names are fixed when the image is made, so that an argument cannot name another file. */
const launcher = (names: readonly string[]): string => `// Made by infra/bundle. node start.mjs <function>
const names = ${JSON.stringify(names)};
const name = process.argv[2];
if (!names.includes(name)) {
  process.stderr.write(\`start: \${name ?? 'nothing'} is no function of this image; it has \${names.join(', ')}\\n\`);
  process.exit(64);
}
await import(\`./\${name}.mjs\`);
`;
