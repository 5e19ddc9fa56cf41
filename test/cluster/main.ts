// `npm run test:cluster [-- <part of a file's path> …]`: starts a node with a real kubelet, installs Bullion from images made here, runs the flows beside this file,
// and takes everything down again, whatever happens. `--shape apart`: each function in a pod of its own, in place of the overlay `single`. `--shape knative`: on Knative. `--stay`: leaves it up, without flows, until it is interrupted.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
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

/** Exit code. */
const runFlows = async ({ paths }: LocalNode, shape: Shape, signal: AbortSignal): Promise<number> => {
  const stages =
    positionals.length === 0 ? [['test/cluster', '--exclude', last], ['test/cluster/last']] : [positionals];
  for (const files of stages) {
    // One file after the other: they kill what others would need.
    const child = spawn(
      process.execPath,
      ['node_modules/vitest/vitest.mjs', 'run', '--no-file-parallelism', ...files],
      {
        cwd: repositoryDir,
        stdio: ['ignore', 'inherit', 'inherit'],
        env: { ...env, BULLION_NODE: paths.dataDir, BULLION_SHAPE: shape },
      },
    );
    const stop = (): void => void child.kill('SIGTERM');
    signal.addEventListener('abort', stop, { once: true });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) return code ?? 1;
  }
  return 0;
};

/** Flows that leave no Bullion to others. */
const last = 'test/cluster/last/**';

/** As behind a gateway, so that transfers are reached from the node. */
const aliases = { [network.node]: `transfer.${systemNamespace}.svc.cluster.local` };

/** What is below Bullion in the shape; returns how it is stopped. */
const prepare = async (node: LocalNode, programs: KnativePrograms | undefined): Promise<() => Promise<void>> =>
  programs === undefined ? async () => undefined : installKnative(node, { programs, report, aliases });

const untilStopped = async (signal: AbortSignal): Promise<number> => {
  if (!signal.aborted) await once(signal, 'abort');
  return 0;
};

const run = async (): Promise<number> => {
  const { shape } = values;
  if (!isShape(shape)) throw new InvalidInput(`--shape ${shape} is none of ${shapes.join(', ')}`);
  const programs = await ensurePrograms(env, report);
  const knative = shape === 'knative' ? await ensureKnative(env, report) : undefined;
  const images = await ensureImages(report);
  const started = Date.now();
  return withNode({ dataDir: values['data-dir'], programs, report }, async (node, signal) => {
    const failures = join(repositoryDir, '.cache', 'cluster-failure');
    try {
      await loadImages(images, node.paths.socket);
      const release = await prepare(node, knative);
      const stop = await installBullion(node, shape);
      report(`ready after ${Math.round((Date.now() - started) / 1000)} s`);
      stdout.write(`ready kubeconfig=${node.paths.kubeconfig}\n`);
      const code = await (values.stay ? untilStopped(signal) : runFlows(node, shape, signal));
      if (code !== 0) throw new Error('flows failed');
      await stop();
      await release();
      return 0;
    } catch (error) {
      if (!signal.aborted) {
        report(`${messageOf(error)}; logs and events are in ${failures}`);
        await collect(node.paths, failures);
      }
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
