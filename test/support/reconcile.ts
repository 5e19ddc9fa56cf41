// The reconciler over an in-memory API, for tests of the functions around it.
import { storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { backends } from '#shared/backends/registry.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { aGoodFile, aSnapshotClass, aStorageClass, testSettings, testTime } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

export { execute } from '#shared/resources/execute.ts';

/** Without other products and their settings. */
export const nothingElse: Pick<ReconcileDeps, 'cdi' | 'trust' | 'config' | 'templates'> = {
  cdi: () => Promise.resolve('serve'),
  trust: () => Promise.resolve(undefined),
  config: () => Promise.resolve({}),
  templates: { mode: 'off', namespace: 'kubevirt-os-images', architecture: 'amd64' },
};

/** With one storage class and one snapshot class, both of the same driver. */
export const createTestReconciler = (): ReconcileDeps & { readonly kube: MemoryKube } => {
  const now = () => testTime;
  const kube = createMemoryKube({ now });
  kube.seed(storageClasses, aStorageClass());
  kube.seed(volumeSnapshotClasses, aSnapshotClass());
  return {
    ...nothingElse,
    kube,
    backends,
    settings: testSettings,
    now,
    log: silentLogger,
    look: async () => aGoodFile,
  };
};
