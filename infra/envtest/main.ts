// `npm run envtest`: makes sure a real control plane is at hand and prints where, as `KUBEBUILDER_ASSETS=<folder>`.
import { env, exit, stderr, stdout } from 'node:process';
import { cacheDirOf, findAssets } from '#infra/envtest/assets.ts';
import { buildControlPlane, hasGo } from '#infra/envtest/build.ts';
import { messageOf } from '#shared/runtime/errors.ts';

const report = (line: string): void => void stderr.write(`envtest: ${line}\n`);

const ensureAssets = async (): Promise<string | undefined> => {
  const given = env['KUBEBUILDER_ASSETS'];
  if (given !== undefined && given !== '') return findAssets(env);
  if (!hasGo(env)) {
    report(
      'skipped: no Go toolchain (`go version` fails) and KUBEBUILDER_ASSETS is not set; install either to use a real API server',
    );
    return findAssets(env);
  }
  await buildControlPlane({ outDir: cacheDirOf(env), env, report });
  return findAssets(env);
};

try {
  const assets = await ensureAssets();
  if (assets !== undefined) stdout.write(`KUBEBUILDER_ASSETS=${assets}\n`);
} catch (error) {
  report(messageOf(error));
  exit(1);
}
