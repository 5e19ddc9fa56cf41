// `node infra/envtest/knative/main.ts`: builds Knative's own senders and prints where they are, as `KNATIVE_ASSETS=<folder>`.
import { spawnSync } from 'node:child_process';
import { env, exit, stderr, stdout } from 'node:process';
import { hasGo, makeFolder } from '#infra/envtest/build.ts';
import {
  findKnative,
  knativeDirOf,
  knativePackages,
  knativeVersion,
  moduleDir,
} from '#infra/envtest/knative/assets.ts';

const report = (line: string): void => void stderr.write(`knative: ${line}\n`);

/** All at once: they share nearly all of what is compiled. Takes minutes at the first time, and gives up after twenty. */
const build = async (folder: string): Promise<void> => {
  report(`building ${Object.keys(knativePackages).join(' and ')} ${knativeVersion()} (minutes at the first time)`);
  await makeFolder(folder);
  const args = ['build', '-trimpath', '-buildvcs=false', '-ldflags=-s -w', '-o', `${folder}/`];
  const { status } = spawnSync('go', [...args, ...Object.values(knativePackages)], {
    cwd: moduleDir,
    env: { ...env, CGO_ENABLED: '0', GOFLAGS: '-p=2' },
    stdio: ['ignore', 'inherit', 'inherit'],
    timeout: 1_200_000,
  });
  if (status === 0) return;
  report('go build failed or took too long; its output is above');
  exit(1);
};

if (findKnative(env) === undefined && hasGo(env)) await build(knativeDirOf(env));
if (findKnative(env) === undefined)
  report('skipped: no Go toolchain (`go version` fails) and nothing was built before');
else stdout.write(`KNATIVE_ASSETS=${env['KNATIVE_ASSETS'] ?? knativeDirOf(env)}\n`);
