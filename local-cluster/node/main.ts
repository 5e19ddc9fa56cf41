// `npm run cluster [-- --data-dir <folder>]`: a Kubernetes cluster of one node on this machine, until it is interrupted. `--clean` takes down what a crash left.
import { env, exit, stderr, stdout } from 'node:process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { defaultDataDir } from '#local-cluster/node/layout.ts';
import { ensurePrograms } from '#local-cluster/node/programs.ts';
import { guardNode, removeNode, withNode } from '#local-cluster/node/run.ts';
import { messageOf } from '#shared/runtime/errors.ts';

const usage = `npm run cluster [-- options]
  --data-dir <folder>   all data of the node (${defaultDataDir}); it is removed at the end
  --clean               takes down what a crash left, and ends
`;

const report = (line: string): void => void stderr.write(`cluster: ${line}\n`);
const flag = { type: 'boolean', default: false } as const;
const { values } = parseArgs({
  options: { 'data-dir': { type: 'string', default: defaultDataDir }, clean: flag, guard: flag, help: flag },
});
const dataDir = values['data-dir'];

const run = async (): Promise<void> => {
  if (values.guard) return guardNode(dataDir);
  if (values.clean) return removeNode(dataDir);
  const programs = await ensurePrograms(env, report);
  const started = Date.now();
  await withNode({ dataDir, programs, report }, async ({ paths }, signal) => {
    report(`ready after ${Math.round((Date.now() - started) / 1000)} s`);
    stdout.write(`ready kubeconfig=${paths.kubeconfig}\n`);
    if (!signal.aborted) await once(signal, 'abort');
  });
};

if (values.help) stdout.write(usage);
else
  await run().catch((error: unknown) => {
    report(messageOf(error));
    exit(1);
  });
