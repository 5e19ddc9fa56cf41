// The paths of the binaries of a real control plane on this machine. Called by `npm run envtest`, `npm start -- --apiserver=real` and tests.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InvalidInput } from '#shared/runtime/errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const required = ['etcd', 'kube-apiserver'] as const;

/** The output folder of the build: `BULLION_ENVTEST_CACHE`, or `.cache/envtest` in the repository, by version. */
export const cacheDirOf = (env: Environment): string => {
  const root = env['BULLION_ENVTEST_CACHE'] ?? resolve(moduleDir, '../../.cache/envtest');
  return join(resolve(root), readVersions().kubernetes, 'bin');
};

/**
 * The folder with `etcd` and `kube-apiserver`: `KUBEBUILDER_ASSETS` when set, else the cache; `undefined` when neither has been filled.
 * Throws InvalidInput when `KUBEBUILDER_ASSETS` names a folder without them.
 */
export const findAssets = (env: Environment): string | undefined => {
  const given = env['KUBEBUILDER_ASSETS'];
  if (given === undefined || given === '') {
    const cached = cacheDirOf(env);
    return missingIn(cached).length === 0 ? cached : undefined;
  }
  const missing = missingIn(given);
  if (missing.length === 0) return resolve(given);
  throw new InvalidInput(`KUBEBUILDER_ASSETS=${given} has no ${missing.join(', ')}: correct it, or unset it and build`);
};

const missingIn = (folder: string): string[] => required.filter((name) => !existsSync(join(folder, name)));

// The versions to build, from go.mod next to this file.

/** Folder of the Go module. */
export const moduleDir = import.meta.dirname;

interface ControlPlaneVersions {
  /** Of kube-apiserver and kube-controller-manager, such as `v1.36.3`. */
  readonly kubernetes: string;
  readonly etcd: string;
}

export const readVersions = (): ControlPlaneVersions => parseVersions(readFileSync(join(moduleDir, 'go.mod'), 'utf8'));

/** Throws InvalidInput when the module no longer requires both. */
export const parseVersions = (goMod: string): ControlPlaneVersions => ({
  kubernetes: requiredVersion(goMod, 'k8s.io/kubernetes'),
  etcd: requiredVersion(goMod, 'go.etcd.io/etcd/server/v3'),
});

const requiredVersion = (goMod: string, module: string): string => {
  const line = goMod.split('\n').find((text) => text.trim().startsWith(`${module} v`));
  const version = line?.trim().split(' ')[1];
  if (version === undefined) throw new InvalidInput(`local-cluster/envtest/go.mod does not require ${module}`);
  return version;
};
