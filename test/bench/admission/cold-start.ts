// From nothing to the first answered review of the bundled functions, beside Node that does nothing, in turns.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { buildBundles } from '#infra/bundle/build.ts';
import { measureLoad } from '#test/bench/admission/load.ts';
import { median } from '#test/bench/table.ts';
import { kubeconfigFor } from '#test/support/kubeconfig.ts';

const functions = ['validate', 'mutate'] as const;
type Started = (typeof functions)[number];

/** Each turn's time to the first answer as a ratio to that of bare Node beside it; milliseconds are medians. */
export interface ColdStart {
  readonly name: Started;
  readonly ms: number;
  readonly bareMs: number;
  readonly ratio: number;
}

const ended = (child: ChildProcess): Promise<void> => new Promise((resolve) => child.once('exit', () => resolve()));

const timeBare = async (): Promise<number> => {
  const started = performance.now();
  await ended(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }));
  return performance.now() - started;
};

/** The function listens as soon as it says so; it is told to end, so that what was compiled is kept for the next turn. */
const timeFirstAnswer = async (name: Started, dir: string, body: string): Promise<number> => {
  const started = performance.now();
  const child = spawn(process.execPath, [join(dir, 'functions', 'start.mjs'), name], {
    env: {
      PATH: process.env['PATH'],
      KUBECONFIG: join(dir, 'kubeconfig'),
      PORT: '0',
      NODE_COMPILE_CACHE: join(dir, 'code'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = ended(child);
  try {
    for await (const line of createInterface(child.stdout!)) {
      const port = /"url":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(line)?.[1];
      if (port === undefined) continue;
      await measureLoad({ port: Number(port), path: `/${name}`, body, clients: 1, requests: 1 });
      return performance.now() - started;
    }
    throw new Error(`${name} ended before it listened; its words are above`);
  } finally {
    child.kill('SIGTERM');
    await gone;
  }
};

/** The first turn fills the code cache and does not count. */
export const measureColdStarts = async (body: string, runs: number): Promise<readonly ColdStart[]> => {
  const dir = mkdtempSync(join(tmpdir(), 'bullion-admission-'));
  try {
    writeFileSync(join(dir, 'kubeconfig'), kubeconfigFor());
    await buildBundles(join(dir, 'functions'));
    const taken: { readonly name: Started; readonly ms: number; readonly bareMs: number }[] = [];
    for (let turn = 0; turn <= runs; turn++) {
      for (const name of functions) {
        const bareMs = await timeBare();
        taken.push({ name, bareMs, ms: await timeFirstAnswer(name, dir, body) });
      }
    }
    const counted = taken.slice(functions.length);
    return functions
      .map((name) => [name, counted.filter((one) => one.name === name)] as const)
      .map(([name, all]) => ({
        name,
        ms: median(all.map(({ ms }) => ms)),
        bareMs: median(all.map(({ bareMs }) => bareMs)),
        ratio: median(all.map(({ ms, bareMs }) => ms / bareMs)),
      }));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
};
