// Where the binaries of a real control plane are on this machine. Called by `npm run envtest`, `npm start -- --apiserver=real` and tests.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { moduleDir, readVersions } from '#local-cluster/envtest/versions.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const required = ['etcd', 'kube-apiserver'] as const;

/** Where the build puts the binaries: `BULLION_ENVTEST_CACHE`, or `.cache/envtest` in the repository, by version. */
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
