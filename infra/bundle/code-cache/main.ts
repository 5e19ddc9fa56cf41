// `node code-cache.mjs <uid> <function> …`: starts functions beside this file once and keeps what V8 compiled for them in the folder `code`, so that a
// start with that as its NODE_COMPILE_CACHE, as this user, compiles nothing. At the same path the same bundles give the same bytes. Bundled; called
// where images are made, and by the bench of cold starts.
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
/** Nobody is there: what is read of it is all that a start needs. */
const kubeconfig = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [{ name: 'u', user: { token: 't' } }],
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'c',
};
/** Milliseconds for what is loaded once health was answered: ten times what it takes. */
const settleMs = 2_000;
/** So many start at a time. */
const width = 3;
/** The seed of V8's hashes, which what it keeps is ordered by. It is no flag that a start would have to share. */
const flags = ['--random-seed=1'];

const ended = (child: ChildProcess): Promise<void> => new Promise((resolve) => child.once('exit', () => resolve()));

/** Undefined: it ended, for want of settings, and what it had loaded by then is kept. */
const urlOf = async (child: ChildProcessWithoutNullStreams): Promise<string | undefined> => {
  for await (const line of createInterface(child.stdout)) {
    const url = /"url":"([^"]+)"/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  return undefined;
};

/** What is answered does not matter: it is the way there that is compiled. */
const ask = (url: string, method: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const asked = request(url, { method, agent: false }, (response) => response.resume().once('end', () => resolve()));
    asked.once('error', reject);
    asked.end(method === 'POST' ? '{}' : undefined);
  });

/** The folder with what was compiled for one function, beside the target: what Node keeps of a file is found by the way from one to the other. */
const compile = async (name: string): Promise<string> => {
  const folder = `${target}-${name}`;
  const env = {
    KUBECONFIG: kubeconfigPath,
    PORT: '0',
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
    // Written at the end.
    child.kill('SIGTERM');
  }
  await gone;
  return folder;
};

/** What several functions share is taken from the first of them. */
const merge = (folder: string): void => {
  for (const made of readdirSync(folder)) {
    // Node looks in the folder of its version, and of the user it runs as.
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
  // oxlint-disable-next-line no-await-in-loop
  for (const folder of await Promise.all(names.slice(from, from + width).map(compile))) merge(folder);
}
rmSync(join(kubeconfigPath, '..'), { recursive: true });
