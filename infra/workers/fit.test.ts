// The table of functions and Workers against what is imported: a function that is said not to run as a Worker needs what holds it, and Workers need
// nothing of the kind.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { listFunctions } from '#infra/bundle/build.ts';
import { fits } from '#infra/workers/fit.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const workers = [...new Set(Object.values(fits).flatMap((fit) => ('worker' in fit ? [fit.worker] : [])))];

interface Graph {
  /** From the root of the repository. */
  readonly modules: readonly string[];
  readonly builtins: readonly string[];
}

const graphOf = async (entryPoint: string): Promise<Graph> => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entryPoint],
    bundle: true,
    platform: 'node',
    format: 'esm',
    write: false,
    metafile: true,
    logLevel: 'silent',
    packages: 'external',
  });
  const imports = Object.values(metafile.inputs).flatMap((input) => input.imports);
  const isExternal = ({ external }: { readonly external?: boolean }): boolean => external === true;
  return {
    modules: Object.keys(metafile.inputs),
    builtins: [...new Set(imports.filter(isExternal).map(({ path }) => path))].toSorted(),
  };
};

/** What is taken of Node and of packages: each runs under workerd, as the tests of the Workers show. */
const fine =
  /^(cloudevents|jose|smol-toml|hono(\/.*)?|zod|yaml|semver|node:(async_hooks|crypto|net|util|path|timers\/promises))$/;

describe('the table of Workers', () => {
  it('lists every function, and every Worker exists', async () => {
    expect(Object.keys(fits).toSorted()).toEqual(await listFunctions());
    for (const name of workers) expect(existsSync(`${root}infra/workers/${name}/wrangler.jsonc`)).toBe(true);
  });

  it.each(Object.entries(fits).flatMap(([name, fit]) => ('worker' in fit ? [[name, fit.worker] as const] : [])))(
    '%s is in Worker %s, and uses nothing that Workers lack',
    async (name, worker) => {
      const { modules, builtins } = await graphOf(`infra/workers/${worker}/worker.ts`);
      expect(modules).toContain(`functions/${name}/app.ts`);
      expect(builtins.filter((path) => !fine.test(path))).toEqual([]);
    },
  );

  it('the Worker for R2 uses nothing that Workers lack', async () => {
    const { builtins } = await graphOf('infra/workers/r2-notifications/worker.ts');
    expect(builtins.filter((path) => !fine.test(path))).toEqual([]);
  });

  it.each(Object.entries(fits).flatMap(([name, fit]) => ('held' in fit ? [[name, fit.held] as const] : [])))(
    '%s cannot run in a Worker because of %s',
    async (name, held) => {
      const { modules } = await graphOf(`functions/${name}/index.ts`);
      expect(modules).toContain(held);
    },
  );
});
