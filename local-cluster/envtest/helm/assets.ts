// Helm, built from its Go module, and its path. Called by `npm run envtest:helm` and the test of the chart.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Environment } from '#local-cluster/envtest/assets.ts';

export const helmModule = 'helm.sh/helm/v3/cmd/helm@v3.22.0';

/** The output folder of the build: below `BULLION_ENVTEST_CACHE`, or `.cache/envtest` in the repository, by version. */
export const helmDirOf = (env: Environment): string => {
  const root = env['BULLION_ENVTEST_CACHE'] ?? resolve(import.meta.dirname, '../../../.cache/envtest');
  return join(resolve(root), `helm-${helmModule.split('@')[1] ?? ''}`);
};

/** Undefined when it has not been built. */
export const findHelm = (env: Environment): string | undefined => {
  const path = join(helmDirOf(env), 'helm');
  return existsSync(path) ? path : undefined;
};
