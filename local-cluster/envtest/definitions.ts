// Definitions of kinds that our manifests use and no CRD of a cluster's own describes: those of the Prometheus operator and of cert-manager. They are
// files of Go modules, read where Go keeps modules. Called by knative/main.ts, which fetches them, and by tests.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { hasGo } from '#local-cluster/envtest/build.ts';
import type { Environment } from '#local-cluster/envtest/assets.ts';

/** Module, and the folder in it that holds CRDs as YAML. */
const modules = [
  { module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0', folder: 'example/prometheus-operator-crd' },
  { module: 'github.com/cert-manager/cert-manager@v1.16.3', folder: 'deploy/crds' },
] as const;

/** Folders with YAML of CRDs, one for each product. Undefined where one is missing, or there is no Go to say where it would be. */
export const findDefinitions = (env: Environment): readonly string[] | undefined => {
  const { stdout } = spawnSync('go', ['env', 'GOMODCACHE'], { env, encoding: 'utf8' });
  const folders = modules.map(({ module, folder }) => join((stdout ?? '').trim(), module, folder));
  return (stdout ?? '') !== '' && folders.every((folder) => existsSync(folder)) ? folders : undefined;
};

/** Seconds at most; a module that cannot be had is said and left out. */
export const fetchDefinitions = (env: Environment, report: (line: string) => void): void => {
  if (!hasGo(env) || findDefinitions(env) !== undefined) return;
  for (const { module } of modules) {
    const args = ['mod', 'download', module];
    // Outside of any module: what is built here depends on other versions.
    const { status } = spawnSync('go', args, {
      env: { ...env, GOFLAGS: '' },
      cwd: '/',
      stdio: 'inherit',
      timeout: 60_000,
    });
    if (status !== 0) report(`${module} cannot be had; tests that read its definitions take open ones`);
  }
};
