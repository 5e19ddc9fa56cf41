// What go.mod beside this file says: the versions that are built. Called by assets.ts and build.ts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Folder of the Go module. */
export const moduleDir = import.meta.dirname;

export interface ControlPlaneVersions {
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
