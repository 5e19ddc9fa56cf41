import { existsSync, mkdtempSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cacheDirOf, findAssets } from '#local-cluster/envtest/assets.ts';
import { buildControlPlane } from '#local-cluster/envtest/build.ts';
import { parseVersions, readVersions } from '#local-cluster/envtest/assets.ts';

let folder = '';
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'envtest-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const fill = (dir: string, names: readonly string[]): void => {
  mkdirSync(dir, { recursive: true });
  for (const name of names) writeFileSync(join(dir, name), '');
};

describe('the assets of a real control plane', () => {
  test('are those of KUBEBUILDER_ASSETS when it is set', () => {
    fill(folder, ['etcd', 'kube-apiserver']);
    expect(findAssets({ KUBEBUILDER_ASSETS: folder })).toBe(folder);
  });

  test('reject a KUBEBUILDER_ASSETS without the binaries, and name what is missing', () => {
    fill(folder, ['etcd']);
    expect(() => findAssets({ KUBEBUILDER_ASSETS: folder })).toThrow(/has no kube-apiserver/);
  });

  test('are in the cache once it is filled', () => {
    const env = { BULLION_ENVTEST_CACHE: folder };
    expect(findAssets(env)).toBeUndefined();
    fill(cacheDirOf(env), ['etcd', 'kube-apiserver']);
    expect(findAssets(env)).toBe(join(folder, readVersions().kubernetes, 'bin'));
  });
});

test.skipIf(!existsSync('/proc/self'))('a folder that cannot be created is reported by name', async () => {
  const build = buildControlPlane({ outDir: '/proc/nope/bin', env: {}, report: () => undefined, minutes: 1 });
  await expect(build).rejects.toThrow('/proc/nope cannot be created: ENOENT');
});

describe('the versions', () => {
  test('are read from the module file', () => {
    const goMod = 'require (\n\tgo.etcd.io/etcd/server/v3 v3.6.8\n\tk8s.io/kubernetes v1.36.3\n)\n';
    expect(parseVersions(goMod)).toEqual({ kubernetes: 'v1.36.3', etcd: 'v3.6.8' });
  });

  test('report a module file without them', () => {
    expect(() => parseVersions('module x\n')).toThrow(/k8s.io\/kubernetes/);
  });
});
