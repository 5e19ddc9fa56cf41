// `npm run test:cluster [-- <part of a path> …]`: starts a node with a real kubelet, installs Bullion from images made here, runs the flows beside this file,
// and takes everything down again, whatever happens. `--shape apart`: each function in a pod of its own, in place of the overlay `single`. `--shape knative`: on Knative. `--stay`: leaves it up, without flows, until it is interrupted.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { env, exit, stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { repositoryDir, systemNamespace } from '#infra/local/manifests.ts';
import { installKnative } from '#local-cluster/node/knative/install.ts';
import { type KnativePrograms, ensureKnative } from '#local-cluster/node/knative/programs.ts';
import { defaultDataDir, network } from '#local-cluster/node/layout.ts';
import { ensurePrograms } from '#local-cluster/node/programs.ts';
import { withNode } from '#local-cluster/node/run.ts';
import type { LocalNode } from '#local-cluster/node/start.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';
import { collect } from '#test/cluster/collect.ts';
import { ensureImages, loadImages } from '#test/cluster/images.ts';
import { type Shape, installBullion, shapes } from '#test/cluster/install.ts';

const report = (line: string): void => void stderr.write(`test:cluster: ${line}\n`);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    stay: { type: 'boolean', default: false },
    shape: { type: 'string', default: 'single' },
    'data-dir': { type: 'string', default: defaultDataDir },
  },
});

const isShape = (text: string): text is Shape => (shapes as readonly string[]).includes(text);

/** Path of the file, what it ended with, and its minutes. */
interface Result {
  readonly file: string;
  readonly code: number;
  readonly minutes: number;
}

/** Flows of files whose path contains one of the arguments; those that leave no Bullion to others come last. */
const flowFiles = (): readonly string[] => {
  const all = globSync('test/cluster/**/*.test.ts', { cwd: repositoryDir }).toSorted();
  const wanted = all.filter((file) => positionals.length === 0 || positionals.some((part) => file.includes(part)));
  if (wanted.length === 0)
    throw new InvalidInput(`no file of test/cluster has ${positionals.join(' or ')} in its path`);
  const { true: last = [], false: first = [] } = Object.groupBy(wanted, (file) =>
    file.startsWith('test/cluster/last/') ? 'true' : 'false',
  );
  return [...first, ...last];
};

/** Waits on a busy machine: who waits for a state says how long, and each test ends. */
const limits = ['--testTimeout=900000', '--hookTimeout=900000'] as const;

/** One file after the other: they kill what others would need. Each in a process of its own, so that what is known of a failure is collected at once. */
const runFile = async ({ paths }: LocalNode, file: string, signal: AbortSignal): Promise<Result> => {
  const started = Date.now();
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...limits, file], {
    cwd: repositoryDir,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...env, BULLION_NODE: paths.dataDir, BULLION_SHAPE: values.shape },
  });
  const stop = (): void => void child.kill('SIGTERM');
  signal.addEventListener('abort', stop, { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  signal.removeEventListener('abort', stop);
  return { file, code: code ?? 1, minutes: (Date.now() - started) / 60_000 };
};

/** Whether all passed. A failure does not keep the other files from running. */
const runFlows = async (node: LocalNode, files: readonly string[], signal: AbortSignal): Promise<boolean> => {
  const results: Result[] = [];
  for (const file of files) {
    const result = await runFile(node, file, signal);
    if (signal.aborted) return false;
    if (result.code !== 0) await collect(node.paths, join(failures, basename(file, '.test.ts')));
    results.push(result);
  }
  for (const { file, code, minutes } of results)
    report(`${values.shape} | ${file} | ${code === 0 ? 'passed' : 'failed'} | ${minutes.toFixed(1)} min`);
  return results.every(({ code }) => code === 0);
};

/** What is known of failures of this run. */
const failures = join(repositoryDir, '.cache', 'cluster-failure');

/** As behind a gateway, so that transfers are reached from the node. */
const aliases = { [network.node]: `transfer.${systemNamespace}.svc.cluster.local` };

/** What is below Bullion in the shape; returns how it is stopped. */
const prepare = async (node: LocalNode, programs: KnativePrograms | undefined): Promise<() => Promise<void>> =>
  programs === undefined ? async () => undefined : installKnative(node, { programs, report, aliases });

const untilStopped = async (signal: AbortSignal): Promise<boolean> => {
  if (!signal.aborted) await once(signal, 'abort');
  return true;
};

const run = async (): Promise<number> => {
  const { shape } = values;
  if (!isShape(shape)) throw new InvalidInput(`--shape ${shape} is none of ${shapes.join(', ')}`);
  const files = flowFiles();
  const programs = await ensurePrograms(env, report);
  const knative = shape === 'knative' ? await ensureKnative(env, report) : undefined;
  const images = await ensureImages(report);
  const started = Date.now();
  return withNode({ dataDir: values['data-dir'], programs, report }, async (node, signal) => {
    await rm(failures, { recursive: true, force: true });
    try {
      await loadImages(images, node.paths.socket);
      const release = await prepare(node, knative);
      const stop = await installBullion(node, shape);
      report(`ready after ${Math.round((Date.now() - started) / 1000)} s`);
      stdout.write(`ready kubeconfig=${node.paths.kubeconfig}\n`);
      const isPassed = await (values.stay ? untilStopped(signal) : runFlows(node, files, signal));
      await stop();
      await release();
      if (!isPassed && !signal.aborted) report(`flows failed; logs and events are in ${failures}`);
      return isPassed ? 0 : 1;
    } catch (error) {
      if (signal.aborted) return 1;
      report(`${messageOf(error)}; logs and events are in ${failures}`);
      await collect(node.paths, failures);
      return 1;
    }
  });
};

exit(
  await run().catch((error: unknown) => {
    report(messageOf(error));
    return 1;
  }),
);
