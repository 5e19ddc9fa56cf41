// `node code-cache.mjs <uid> <function> …`: starts the functions in its directory once and stores the code that V8 compiled for them in the
// folder `code`; a start with that as NODE_COMPILE_CACHE, as this user, compiles nothing. Reproducible for the same bundles and path. Bundled;
// called when images are built, and by the cold start benchmark.
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const [uid = '', ...names] = process.argv.slice(2);
const app = import.meta.dirname;
const target = join(app, 'code');
const kubeconfigPath = join(mkdtempSync(join(tmpdir(), 'code-cache-')), 'kubeconfig');
/** No server is required: parsing it loads everything that a start needs. */
const kubeconfig = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [{ name: 'u', user: { token: 't' } }],
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'c',
};
/** Milliseconds for modules that are loaded after the first health check: ten times the usual duration. */
const settleMs = 2_000;
/** Functions started concurrently. */
const width = 3;
/** The seed of V8's hashes, which determines the order in its cache. A start need not use the same flag. */
const flags = ['--random-seed=1'];

const ended = (child: ChildProcess): Promise<void> => new Promise((resolve) => child.once('exit', () => resolve()));

/** Undefined: it exited because settings are missing, and the modules loaded until then are kept. */
const urlOf = async (child: ChildProcessWithoutNullStreams): Promise<string | undefined> => {
  for await (const line of createInterface(child.stdout)) {
    const url = /"url":"([^"]+)"/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  return undefined;
};

/** The answer is irrelevant: the request compiles the code. */
const ask = (url: string, method: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const asked = request(url, { method, agent: false }, (response) => response.resume().once('end', () => resolve()));
    asked.once('error', reject);
    asked.end(method === 'POST' ? '{}' : undefined);
  });

/** The folder with the compiled code of one function, beside the target: Node identifies a file by its path relative to the cache. */
const compile = async (name: string): Promise<string> => {
  const folder = `${target}-${name}`;
  const env = {
    KUBECONFIG: kubeconfigPath,
    PORT: '0',
    // The others of `single`.
    ...Object.fromEntries(['ADMISSION', 'EVENTS', 'IMPORT', 'METRICS'].map((of) => [`${of}_PORT`, '0'])),
    NODE_COMPILE_CACHE: folder,
    NODE_COMPILE_CACHE_PORTABLE: '1',
  };
  // Pipes: there may be no /dev/null.
  const child = spawn(process.execPath, [...flags, join(app, 'start.mjs'), name], { env, stdio: 'pipe' });
  child.stderr.resume();
  const gone = ended(child);
  const url = await urlOf(child);
  if (url !== undefined) {
    await ask(`${url}/readyz`, 'GET');
    await ask(url, 'POST');
    await sleep(settleMs);
    // The cache is written at exit.
    child.kill('SIGTERM');
  }
  await gone;
  return folder;
};

/** Files that several functions share are taken from the first one. */
const merge = (folder: string): void => {
  for (const made of readdirSync(folder)) {
    // Node uses a folder for its version and the user it runs as.
    const wanted = join(target, made.replace(/-\d+$/, `-${uid}`));
    mkdirSync(wanted, { recursive: true });
    for (const file of readdirSync(join(folder, made)).toSorted()) {
      if (existsSync(join(wanted, file))) continue;
      cpSync(join(folder, made, file), join(wanted, file));
      chmodSync(join(wanted, file), 0o644);
    }
  }
  rmSync(folder, { recursive: true });
};

writeFileSync(kubeconfigPath, JSON.stringify(kubeconfig));
rmSync(target, { recursive: true, force: true });
for (let from = 0; from < names.length; from += width) {
  for (const folder of await Promise.all(names.slice(from, from + width).map(compile))) merge(folder);
}
rmSync(join(kubeconfigPath, '..'), { recursive: true });
