// An overlay as written by a user: ours with components that depend on the cluster, and patches; and the output of kubectl for any.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';

/** Folder of the manifests. */
export const infraDir = resolve(import.meta.dirname, '../../infra');

/** Folder of an overlay of `production` with these components. The caller removes it. */
export const overlayWith = (components: readonly string[], more: object = {}): string => {
  const dir = mkdtempSync(join(tmpdir(), 'bullion-overlay-'));
  const content = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [relative(dir, join(infraDir, 'overlays/production'))],
    components: components.map((name) => relative(dir, join(infraDir, `components/${name}`))),
    ...more,
  };
  writeFileSync(join(dir, 'kustomization.yaml'), JSON.stringify(content));
  return dir;
};

/** The YAML of `kubectl kustomize`. Throws with its message if it fails or prints a warning. */
export const renderText = (folder: string): string => {
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  if (status !== 0 || stderr !== '') throw new Error(`kubectl kustomize ${folder}: ${stderr}`);
  return stdout;
};
