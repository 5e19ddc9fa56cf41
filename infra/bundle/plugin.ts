// Customizes esbuild so that a function starts fast: builtins by `require`, zod by name, clients without code that pods do not use. Called by
// build.ts.
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { basename } from 'node:path';
import { lateSchemaModule, lateSchemaPath, withLateSchemas } from '#infra/bundle/late-schemas.ts';
import type { OnResolveArgs, OnResolveResult, Plugin, PluginBuild } from 'esbuild';

/** Files of worker threads, by the URL of their source; each becomes a separate bundle. */
export type Workers = Set<string>;

/** Lazily loaded packages, each a separate bundle, by the name of its file. */
export const lazyPackages: Readonly<Record<string, string>> = {
  '@aws-sdk/client-s3': 'aws-sdk',
  '@kubernetes/client-node': 'kubernetes',
  '@sigstore/bundle': 'sigstore-bundle',
  '@sigstore/protobuf-specs': 'sigstore-specs',
  '@sigstore/verify': 'sigstore-verify',
  openpgp: 'openpgp',
  undici: 'undici',
};

/** Those of them that are imported at the top of modules, with their used exports, if not all. */
const beside: Readonly<Record<string, readonly string[] | undefined>> = {
  '@kubernetes/client-node': ['HttpMethod', 'KubeConfig', 'RequestContext'],
  // By name, as a module: its CommonJS form asks for its own file name.
  openpgp: ['createMessage', 'enums', 'readCleartextMessage', 'readKeys', 'readSignature', 'verify'],
  undici: undefined,
};

/** Free of side effects although they do not declare it: unused exports are dropped. */
const pure = /\/node_modules\/(@kubernetes\/client-node|socks|socks-proxy-agent|openid-client|jsonpath-plus)\//;

/**
 * Evaluated on first use, by package, with the used exports: authentication methods and proxies that only a user's kubeconfig uses, and modules
 * for the first event that the start does not need.
 */
const late: Readonly<Record<string, readonly string[]>> = {
  socks: ['SocksClient'],
  'socks-proxy-agent': ['SocksProxyAgent'],
  hpagent: ['HttpProxyAgent', 'HttpsProxyAgent'],
  'jsonpath-plus': ['JSONPath'],
  cloudevents: ['CloudEvent', 'ValidationError'],
  semver: ['default'],
  yaml: ['parse', 'parseAllDocuments', 'stringify'],
};

/**
 * Indexes of the generated client by their used exports: reading all of its 850 files, only to drop them, took most of the build time. Using an
 * export that is not listed here is a build error.
 */
const takenOfClient: Readonly<Record<string, string>> = {
  'index.js': `export { KubeConfig } from './config.js'; export { HttpMethod, RequestContext } from './gen/http/http.js';`,
  'gen/index.js': `export { createConfiguration } from './configuration.js'; export { ServerConfiguration } from './servers.js';`,
};

/** Parts of undici that only its index imports and that are not used here: fetch (Node has one), mocks, caches, interceptors. */
const unusedOfUndici = /^\.\/lib\/(mock|web|cache|interceptor)\//;

const decided = Symbol('decided');

const anyOf = (names: readonly string[]): RegExp =>
  new RegExp(`^(?:${names.map((name) => name.replaceAll('/', String.raw`\/`)).join('|')})$`);

/** Prefix of a package name: an entry point that re-exports the package. */
export const reExported = 're-exported:';

export const functionPlugin = (workers: Workers): Plugin => ({
  name: 'bullion',
  setup: (build) => {
    build.onResolve({ filter: anyOf(Object.keys(lazyPackages)) }, ({ path, kind }) =>
      kind === 'dynamic-import' ? { path: `./${lazyPackages[path]}.mjs`, external: true } : undefined,
    );
    build.onResolve({ filter: new RegExp(`^${reExported}`) }, ({ path, resolveDir }) => ({
      path: path.slice(reExported.length),
      namespace: 're-exported',
      pluginData: { dir: resolveDir },
    }));
    build.onLoad({ filter: /.*/, namespace: 're-exported' }, async ({ path, pluginData }) => ({
      contents: await reExport(path),
      resolveDir: (pluginData as { readonly dir: string }).dir,
    }));
    build.onResolve({ filter: anyOf(Object.keys(beside)) }, ({ path, kind, namespace, pluginData }) =>
      kind === 'import-statement' && namespace !== 're-exported' && pluginData !== decided
        ? { path, namespace: 'beside' }
        : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'beside' }, async ({ path }) => ({
      contents: lateParts(await namesOf(path), `./${lazyPackages[path]}.mjs`),
    }));
    build.onResolve(
      { filter: anyOf(Object.values(lazyPackages).map((name) => `./${name}.mjs`)) },
      ({ path, namespace }) => (namespace === 'beside' ? { path, external: true } : undefined),
    );
    build.onResolve({ filter: unusedOfUndici }, ({ path, importer }) =>
      importer.endsWith('/undici/index.js') ? { path, namespace: 'unused' } : undefined,
    );
    build.onResolve({ filter: anyOf(Object.keys(late)) }, ({ path, kind, resolveDir }) =>
      kind === 'import-statement' ? { path, namespace: 'late', pluginData: { dir: resolveDir } } : undefined,
    );
    // An import of `node:http` reads all its exports, and thereby loads the `fetch` of Node: 60 ms. `require` does not.
    build.onResolve({ filter: anyOf(builtinNames) }, ({ path, namespace, kind, importer }) => {
      if (namespace === 'builtin' || kind === 'require-call') return { path, external: true };
      const suffix = isLateBuiltin(path, importer) ? lateSuffix : '';
      return { path, suffix, namespace: 'builtin', sideEffects: false };
    });
    build.onResolve({ filter: /^[.@a-z]/ }, (args) => withoutSideEffects(build, args));
    build.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path, suffix }) => ({
      contents: builtinModule(path, suffix === lateSuffix),
    }));
    build.onLoad({ filter: /.*/, namespace: 'unused' }, ({ path }) => ({ contents: unusedModule(path) }));
    build.onLoad({ filter: /.*/, namespace: 'late' }, ({ path, pluginData }) => ({
      contents: lateModule(path),
      resolveDir: (pluginData as { readonly dir: string }).dir,
    }));
    // HTTP/2 and its dependencies are loaded only when a server uses it.
    build.onLoad({ filter: /\/undici\/lib\/dispatcher\/client\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replace(
        /= (require\('\.\/client-h2\.js'\))/,
        '= (...given) => $1(...given)',
      ),
    }));
    build.onLoad({ filter: /\/client-node\/dist\/(gen\/)?index\.js$/ }, ({ path }) => ({
      contents: takenOfClient[path.slice(path.lastIndexOf('/dist/') + '/dist/'.length)] ?? '',
    }));
    build.onResolve({ filter: anyOf([lateSchemaPath]) }, ({ path }) => ({ path, namespace: 'late-schema' }));
    build.onLoad({ filter: /.*/, namespace: 'late-schema' }, () => ({ contents: lateSchemaModule }));
    build.onLoad({ filter: own }, async ({ path }) => {
      const source = ownSource(await readFile(path, 'utf8'), path, workers);
      const { code } = await build.esbuild.transform(source, { loader: 'ts', target: 'node24' });
      return { contents: withLateSchemas(code), loader: 'js' };
    });
  },
});

const own = /\/(functions|events|shared|infra\/(single|local|generate)|local-cluster\/(broker|ping))\/.*\.ts$/;

const lateSuffix = '?late';

/** Loaded on first use: cryptography, and builtins from which our own code imports only functions. */
const isLateBuiltin = (name: string, importer: string): boolean =>
  /^(node:)?crypto$/.test(name) || (/^(node:)?(tls|fs\/promises|child_process)$/.test(name) && own.test(importer));

const builtinNames = builtinModules.flatMap((name) => [name, `node:${name}`]);

/** Only possible contents of such a package are resolved here; esbuild does the rest. */
const withoutSideEffects = async (build: PluginBuild, args: OnResolveArgs): Promise<OnResolveResult | undefined> => {
  const { path, kind, importer, resolveDir, pluginData } = args;
  const isCandidate = path.startsWith('.') ? pure.test(importer) : pure.test(`/node_modules/${path}/`);
  if (pluginData === decided || !isCandidate) return undefined;
  const found = await build.resolve(path, { kind, importer, resolveDir, pluginData: decided });
  return pure.test(found.path) ? { ...found, sideEffects: false } : found;
};

/** The used exports of a package. */
const namesOf = async (name: string): Promise<readonly string[]> =>
  beside[name] ??
  Object.keys((await import(name)) as object).filter((one) => !['default', 'module.exports'].includes(one));

/** By name: esbuild does not know the exports of a CommonJS package. */
const reExport = async (name: string): Promise<string> => {
  const names = (await namesOf(name)).join(', ');
  return beside[name] === undefined
    ? `export const { ${names} } = require('${name}');`
    : `export { ${names} } from '${name}';`;
};

/** By name, so that unused exports are not read: `http` creates its `WebSocket` on access. */
const builtinModule = (name: string, isLate: boolean): string => {
  const names = Object.keys(process.getBuiltinModule(name) ?? {}).filter((key) => /^(?!default$)\w+$/.test(key));
  if (isLate) return `${lateParts(names, name)}\n${lateDefault(name)}`;
  const parts = names.map((key) => `export const ${key} = /* @__PURE__ */ of('${key}');`);
  return `const from = require('${name}'); const of = (name) => from[name];\n${parts.join('\n')}\nexport default from;`;
};

/** Throws if it is used after all. The index only creates and exports an object of such a class. */
const unusedModule = (path: string): string => `
const absent = new Proxy(function () {}, {
  construct: () => ({}),
  apply: () => { throw new Error('undici ${path} is left out of bundles: infra/bundle/plugin.ts'); },
  get: () => absent,
});
module.exports = absent;`;

const lateModule = (name: string): string => {
  const parts = late[name] ?? [];
  return parts.includes('default') ? lateDefault(name) : lateParts(parts, name);
};

const lateParts = (parts: readonly string[], name: string): string =>
  parts.map((part) => `export const ${part} = ${lateProxy(`require('${name}').${part}`)};`).join('\n');

const lateDefault = (name: string): string => `export default ${lateProxy(`require('${name}')`)};`;

/** A proxy for a function or a class. */
const lateProxy = (target: string): string => `/* @__PURE__ */ new Proxy(function () {}, {
  construct: (_, given) => Reflect.construct(${target}, given),
  apply: (_, self, given) => Reflect.apply(${target}, self, given),
  get: (_, key) => ${target}[key],
})`;

/**
 * `import { z }` would keep all of zod with its languages; a namespace import keeps only what is used. Workers get the names of their bundles. A
 * file of a package that is read as text becomes that text.
 */
const ownSource = (text: string, path: string, workers: Workers): string =>
  text
    .replace(/^import \{ z \} from 'zod';$/m, "import * as z from 'zod';")
    .replaceAll(/readFileSync\(new URL\(import\.meta\.resolve\('(.+?)'\)\), 'utf8'\)/g, (_, file: string) =>
      JSON.stringify(readFileSync(new URL(import.meta.resolve(file)), 'utf8')),
    )
    .replaceAll(/new URL\('(\.\/[\w-]+\.ts)', import\.meta\.url\)/g, (_, file: string) => {
      const source = new URL(file, `file://${path}`);
      workers.add(source.pathname);
      return `new URL('./${workerName(source.pathname)}.mjs', import.meta.url)`;
    });

export const workerName = (path: string): string => `worker-${basename(path, '.ts')}`;
