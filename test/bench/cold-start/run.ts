// Cold start of each bundled function: from nothing to the first yes of /readyz, beside Node that does nothing, in turns.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { type Bundle, buildBundles } from '#infra/bundle/build.ts';
import { cpuSeconds, residentMiB } from '#test/bench/processes.ts';
import { median, toTable } from '#test/bench/table.ts';

/** At most this many times bare Node. */
const bound = 3;

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: "https://127.0.0.1:6443" } }]
users: [{ name: u, user: { token: t } }]
contexts: [{ name: c, context: { cluster: c, user: u } }]
current-context: c
`;

interface Sample {
  readonly ms: number;
  readonly cpuMs: number;
  readonly residentMiB: number;
}

interface Place {
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
}

export const run = async (args: readonly string[]): Promise<void> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: 'string', default: '11' },
      only: { type: 'string', default: '' },
      uncompiled: { type: 'boolean', default: false },
    },
  });
  const dir = mkdtempSync(join(tmpdir(), 'bullion-cold-start-'));
  try {
    writeFileSync(join(dir, 'kubeconfig'), kubeconfig);
    const bundles = (await buildBundles(join(dir, 'functions'))).filter(
      ({ name, role }) => role === 'function' && name !== 'transfer-job' && name.includes(values.only),
    );
    const env = {
      PATH: process.env['PATH'],
      KUBECONFIG: join(dir, 'kubeconfig'),
      PORT: '0',
      ...(values.uncompiled ? {} : compiledCode(join(dir, 'functions'), bundles)),
    };
    print(bundles, await measureAll(bundles, { dir, env }, Number(values.runs)));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
};

/** As images have it: compiled when they are made. */
const compiledCode = (folder: string, bundles: readonly Bundle[]): NodeJS.ProcessEnv => {
  const args = [join(folder, 'code-cache.mjs'), String(process.getuid?.() ?? 0), ...bundles.map(({ name }) => name)];
  execFileSync(process.execPath, args, { stdio: 'inherit' });
  return { NODE_COMPILE_CACHE: join(folder, 'code'), NODE_COMPILE_CACHE_PORTABLE: '1' };
};

type Samples = ReadonlyMap<string, readonly Sample[]>;
const bare = 'node -e 0';

/** In turns, so that whatever else the machine does befalls all alike. The first turn warms what is cached and does not count. */
const measureAll = async (bundles: readonly Bundle[], place: Place, runs: number): Promise<Samples> => {
  const samples = new Map<string, Sample[]>();
  for (let turn = 0; turn <= runs; turn += 1) {
    for (const name of [bare, ...bundles.map((bundle) => bundle.name)]) {
      const sample = name === bare ? await measureBare(place) : await measureFunction(name, place);
      if (turn > 0) samples.set(name, [...(samples.get(name) ?? []), sample]);
    }
  }
  return samples;
};

const ended = (child: ChildProcess): Promise<void> => new Promise((resolve) => child.once('exit', () => resolve()));

/** Its processor time is read by itself just before it ends: nothing is left of a process that is gone. */
const measureBare = async ({ env }: Place): Promise<Sample> => {
  const code =
    'const { user, system } = process.cpuUsage(); console.log((user + system) / 1000, process.memoryUsage.rss() / 2 ** 20)';
  const started = performance.now();
  const child = spawn(process.execPath, ['-e', '0'], { stdio: 'ignore', env });
  await ended(child);
  const ms = performance.now() - started;
  const told = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'], env });
  const [line] = await Array.fromAsync(createInterface(told.stdout));
  const [cpuMs = 0, rss = 0] = (line ?? '').split(' ').map(Number);
  return { ms, cpuMs, residentMiB: rss };
};

const measureFunction = async (name: string, { dir, env }: Place): Promise<Sample> => {
  const started = performance.now();
  const child = spawn(process.execPath, [join(dir, 'functions', 'start.mjs'), name], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = ended(child);
  try {
    await isReady(await urlOf(child));
    const ms = performance.now() - started;
    const pid = child.pid ?? 0;
    return { ms, cpuMs: cpuSeconds([pid]) * 1000, residentMiB: residentMiB([pid]) };
  } finally {
    // Not killed: the code cache is written at the end.
    child.kill('SIGTERM');
    await gone;
  }
};

/** From the line it logs. Throws when it ends without having listened. */
const urlOf = async (child: ChildProcess): Promise<string> => {
  for await (const line of createInterface(child.stdout!)) {
    const url = /"url":"([^"]+)"/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error('the function ended before it listened; its words are above');
};

const isReady = (url: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const asked = get(`${url}/readyz`, { agent: false }, (response) => {
      response.resume();
      if (response.statusCode === 200) resolve();
      else reject(new Error(`/readyz answers ${response.statusCode}`));
    });
    asked.once('error', reject);
  });

const print = (bundles: readonly Bundle[], samples: Samples): void => {
  const of = (name: string, field: keyof Sample): number => median((samples.get(name) ?? []).map((one) => one[field]));
  const rows = [bare, ...bundles.map(({ name }) => name)].map((name) => [
    name,
    of(name, 'ms').toFixed(0),
    (of(name, 'ms') / of(bare, 'ms')).toFixed(2),
    of(name, 'cpuMs').toFixed(0),
    of(name, 'residentMiB').toFixed(0),
    String(Math.ceil((bundles.find((bundle) => bundle.name === name)?.bytes ?? 0) / 1024)),
  ]);
  console.log(toTable([['function', 'ms to ready', 'times bare', 'CPU ms', 'MiB resident', 'KiB bundle'], ...rows]));
  const slow = rows.filter(([, , times]) => Number(times) > bound).map(([name]) => name);
  console.log(
    slow.length === 0 ? `all within ${bound} times bare Node` : `above ${bound} times bare Node: ${slow.join(', ')}`,
  );
};
