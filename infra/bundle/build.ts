// Each function as one file, with what it loads later beside it. Called by `npm run build`, the images and tests.
import { readdir, rm, writeFile } from 'node:fs/promises';
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
  const late = Object.entries(lazyPackages);
  const more = await bundleAll(
    [
      ...[...workers].map((path) => ({ name: workerName(path), role: 'worker' as const, path })),
      ...late.map(([of, name]) => ({ name, role: 'lazy' as const, path: `${reExported}${of}` })),
      { name: 'code-cache', role: 'tool', path: 'infra/bundle/code-cache/main.ts' },
    ],
    { outDir, workers },
  );
  await writeFile(join(outDir, 'start.mjs'), launcher(names));
  return [...functions, ...more];
};

interface Entry extends Pick<Bundle, 'name' | 'role'> {
  readonly path: string;
}

/** One build of many entries reads each source once; nothing is shared between what comes out. */
const bundleAll = async (
  entries: readonly Entry[],
  { outDir, workers }: { readonly outDir: string; readonly workers: Workers },
): Promise<readonly Bundle[]> => {
  const { metafile } = await build({
    ...common,
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
  target: 'node24',
  // Whitespace and syntax only: names of classes reach logs and statuses.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'silent',
  // Optional companions of `ws` and `debug`, which are not installed.
  external: ['utf-8-validate', 'bufferutil', 'supports-color'],
  // zod makes code for each schema it meets, which pays off after more requests than most instances see.
  banner: {
    js: "globalThis.__zod_globalConfig={jitless:true};import{createRequire as requireFrom}from'node:module';const require=requireFrom(import.meta.url);",
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
