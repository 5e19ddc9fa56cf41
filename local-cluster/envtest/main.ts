// `npm run envtest [-- --minutes N]`: ensures that a real control plane is available and prints its path, as `KUBEBUILDER_ASSETS=<folder>`.
import { env, exit, stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { cacheDirOf, findAssets } from '#local-cluster/envtest/assets.ts';
import { buildControlPlane, hasGo } from '#local-cluster/envtest/build.ts';
import { messageOf } from '#shared/runtime/errors.ts';

const report = (line: string): void => void stderr.write(`envtest: ${line}\n`);

/** Time limit of a build in minutes; the next run does not repeat finished compilations. */
const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' } } });

const ensureAssets = async (): Promise<string | undefined> => {
  const given = env['KUBEBUILDER_ASSETS'];
  if (given !== undefined && given !== '') return findAssets(env);
  if (!hasGo(env)) {
    report(
      'skipped: no Go toolchain (`go version` fails) and KUBEBUILDER_ASSETS is not set; install either to use a real API server',
    );
    return findAssets(env);
  }
  await buildControlPlane({ outDir: cacheDirOf(env), env, report, minutes: Number(values.minutes) }).catch(
    (error: unknown) => {
      // Without the controller manager there is still a server for tests.
      if (findAssets(env) === undefined) throw error;
      report(messageOf(error));
    },
  );
  return findAssets(env);
};

try {
  const assets = await ensureAssets();
  if (assets !== undefined) stdout.write(`KUBEBUILDER_ASSETS=${assets}\n`);
} catch (error) {
  report(messageOf(error));
  exit(1);
}
