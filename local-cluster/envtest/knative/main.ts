// `npm run envtest:knative [-- --minutes N]`: builds Knative's own senders and prints their path, as `KNATIVE_ASSETS=<folder>`.
import { spawnSync } from 'node:child_process';
import { env, stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { hasGo, makeFolder } from '#local-cluster/envtest/build.ts';
import { fetchDefinitions } from '#local-cluster/envtest/knative/assets.ts';
import {
  findKnative,
  knativeDirOf,
  knativePackages,
  knativeVersion,
  moduleDir,
} from '#local-cluster/envtest/knative/assets.ts';

const report = (line: string): void => void stderr.write(`knative: ${line}\n`);

/** Time limit of the build in minutes; the next run does not repeat finished compilations. */
const { values } = parseArgs({ options: { minutes: { type: 'string', default: '20' } } });

/** All at once: they share nearly all of their dependencies. */
const build = async (folder: string): Promise<void> => {
  report(`building ${Object.keys(knativePackages).join(', ')} ${knativeVersion()} (takes minutes the first time)`);
  await makeFolder(folder);
  const started = Date.now();
  const args = ['build', '-trimpath', '-buildvcs=false', '-ldflags=-s -w', '-o', `${folder}/`];
  const { status } = spawnSync('go', [...args, ...Object.values(knativePackages)], {
    cwd: moduleDir,
    env: { ...env, CGO_ENABLED: '0', GOFLAGS: '-p=2' },
    stdio: ['ignore', 'inherit', 'inherit'],
    // When interrupted, it stops its compilers and keeps their results.
    killSignal: 'SIGINT',
    timeout: Number(values.minutes) * 60_000,
  });
  const seconds = Math.round((Date.now() - started) / 1000);
  if (status === 0) report(`built in ${seconds} s`);
  else report(`not built after ${seconds} s: go build failed, or exceeded its limit of ${values.minutes} minutes`);
};

fetchDefinitions(env, report);
if (findKnative(env) === undefined && hasGo(env)) await build(knativeDirOf(env));
const found = findKnative(env);
if (found !== undefined) stdout.write(`KNATIVE_ASSETS=${env['KNATIVE_ASSETS'] ?? knativeDirOf(env)}\n`);
else if (!hasGo(env)) report('skipped: no Go toolchain (`go version` fails) and nothing was built before');
process.exitCode = found === undefined && hasGo(env) ? 1 : 0;
