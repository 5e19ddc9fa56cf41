// Knative's own senders and its queue-proxy, built from the Go module next to this file, and their paths. Called by main.ts and the differential test.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { spawnSync } from 'node:child_process';
import { hasGo } from '#local-cluster/envtest/build.ts';
import type { Environment } from '#local-cluster/envtest/assets.ts';

export const moduleDir = import.meta.dirname;

/** Name of each binary and its package. */
export const knativePackages = {
  apiserver_receive_adapter: 'knative.dev/eventing/cmd/apiserver_receive_adapter',
  filter: 'knative.dev/eventing/cmd/broker/filter',
  mtping: 'knative.dev/eventing/cmd/mtping',
  queue: 'knative.dev/serving/cmd/queue',
  judge: './judge',
} as const;

export interface KnativeAssets {
  /** ApiServerSource's adapter. */
  readonly adapter: string;
  /** The channel-based Broker's broker-filter. */
  readonly filter: string;
  /** PingSource's adapter. */
  readonly ping: string;
  /** queue-proxy, which runs in front of every Knative Service. */
  readonly queue: string;
  /** Validates manifests as Knative's webhooks would; see judge/main.go. */
  readonly judge: string;
}

/** Version of `knative.dev/eventing` to build, such as `v0.47.0`. */
export const knativeVersion = (): string => {
  const version = /knative\.dev\/eventing (v\S+)/.exec(readFileSync(join(moduleDir, 'go.mod'), 'utf8'))?.[1];
  if (version === undefined)
    throw new InvalidInput('local-cluster/envtest/knative/go.mod does not require knative.dev/eventing');
  return version;
};

/** The output folder of the build: below `BULLION_ENVTEST_CACHE`, or `.cache/envtest` in the repository, by version. */
export const knativeDirOf = (env: Environment): string => {
  const root = env['BULLION_ENVTEST_CACHE'] ?? resolve(moduleDir, '../../../.cache/envtest');
  return join(resolve(root), `knative-${knativeVersion()}`);
};

/** The binaries, from `KNATIVE_ASSETS` or the cache; undefined when they have not been built. */
export const findKnative = (env: Environment): KnativeAssets | undefined => {
  const folder = env['KNATIVE_ASSETS'] ?? knativeDirOf(env);
  const assets = {
    adapter: join(folder, 'apiserver_receive_adapter'),
    filter: join(folder, 'filter'),
    ping: join(folder, 'mtping'),
    queue: join(folder, 'queue'),
    judge: join(folder, 'judge'),
  };
  return Object.values(assets).every((file) => existsSync(file)) ? assets : undefined;
};

// Definitions of kinds that our manifests use and that are in no CRD of this repository: those of the Prometheus operator and of
// cert-manager. They are files of Go modules, read from Go's module cache.

/** Module, and the folder in it with CRDs as YAML. */
const modules = [
  { module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0', folder: 'example/prometheus-operator-crd' },
  { module: 'github.com/cert-manager/cert-manager@v1.16.3', folder: 'deploy/crds' },
] as const;

/** Folders with YAML of CRDs, one for each product. Undefined when one is missing, or Go is not installed. */
export const findDefinitions = (env: Environment): readonly string[] | undefined => {
  const { stdout } = spawnSync('go', ['env', 'GOMODCACHE'], { env, encoding: 'utf8' });
  const folders = modules.map(({ module, folder }) => join((stdout ?? '').trim(), module, folder));
  return (stdout ?? '') !== '' && folders.every((folder) => existsSync(folder)) ? folders : undefined;
};

/** Time limit in seconds; an unavailable module is reported and skipped. */
export const fetchDefinitions = (env: Environment, report: (line: string) => void): void => {
  if (!hasGo(env) || findDefinitions(env) !== undefined) return;
  for (const { module } of modules) {
    const args = ['mod', 'download', module];
    // Outside of any module: this module depends on other versions.
    const { status } = spawnSync('go', args, {
      env: { ...env, GOFLAGS: '' },
      cwd: '/',
      stdio: 'inherit',
      timeout: 60_000,
    });
    if (status !== 0) report(`${module} is not available; tests use definitions without validation instead`);
  }
};
