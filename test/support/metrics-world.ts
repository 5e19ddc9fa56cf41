// A cluster in which every metric has a sample: for tests of the exporter, its alerts and its dashboard.
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { deployments } from '#shared/api/foreign/apps.ts';
import { nodes, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import type { MetricsDeps } from '#shared/metrics/collect.ts';
import { aHyperCloudImage, aStorageClass, testTime } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';

const at = (seconds: number): string => new Date(testTime + seconds * 1000).toISOString();
const ready = (status: 'True' | 'False', reason: string, seconds: number) => [
  { type: 'Ready', status, reason, message: '', lastTransitionTime: at(seconds) },
];
const images = hyperCloudImageKind.type;

const seedImages = (kube: MemoryKube): void => {
  const created = { creationTimestamp: at(0) };
  kube.seed(images, {
    ...aHyperCloudImage({ metadata: { name: 'done', generation: 1, ...created } }),
    status: {
      phase: 'Available',
      state: 'Available',
      observedGeneration: 1,
      size: 300,
      virtualSize: 2000,
      format: 'qcow2',
      compression: 'none',
      failed: 2,
      announced: 'Available/1/2/',
      conditions: ready('True', 'Ready', 90),
    },
  } as never);
  kube.seed(images, {
    ...aHyperCloudImage({ metadata: { name: 'running', generation: 1, ...created } }),
    status: {
      phase: 'Downloading',
      observedGeneration: 1,
      progress: 40,
      attemptsFailed: 1,
      failed: 1,
      lastFailure: { reason: 'NetworkFailed', message: '' },
      transfer: {
        run: 'r',
        reportedAt: at(0),
        startedAt: at(0),
        sequence: 1,
        phase: 'Downloading',
        percent: 40,
        receivedBytes: 120,
      },
      deadline: at(-600),
      conditions: ready('False', 'Downloading', 1),
    },
  } as never);
  kube.seed(images, {
    ...aHyperCloudImage({ metadata: { name: 'failed', generation: 1, ...created } }),
    status: {
      phase: 'Failed',
      observedGeneration: 1,
      failed: 4,
      lastFailure: { reason: 'ChecksumMismatch', message: '' },
      conditions: ready('False', 'ChecksumMismatch', 1),
    },
  } as never);
};

const seedGolden = (kube: MemoryKube): void => {
  kube.seed(dataImportCronKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataImportCron',
    metadata: { namespace: 'golden', name: 'fedora' },
    spec: {
      schedule: '@daily',
      managedDataSource: 'fedora',
      template: {
        spec: { source: { registry: { url: 'docker://r/fedora' } }, storage: { storageClassName: 'local' } },
      },
    },
    status: {
      lastPoll: { time: at(0), outcome: 'Failed', message: 'no', failures: 4 },
      nextExecutionTimestamp: at(60),
      lastImportTimestamp: at(-3600),
      conditions: [{ type: 'UpToDate', status: 'False', reason: 'Outdated' }],
    },
  } as never);
  const labels = { [cdiLabels.cron]: 'fedora' };
  kube.seed(dataVolumes, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { namespace: 'golden', name: 'fedora-1', labels },
    spec: { source: { blank: {} }, storage: {} },
    status: { phase: 'Pending' },
  } as never);
  for (const name of ['fedora-1', 'fedora-0']) {
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: 'golden', name, labels },
      spec: { resources: { requests: { storage: '1Gi' } } },
    });
  }
};

const seedStorage = (kube: MemoryKube): void => {
  kube.seed(storageClasses, aStorageClass('local'));
  kube.seed(storageProfiles, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'StorageProfile',
    metadata: { name: 'local' },
    status: {
      storageClass: 'local',
      cloneStrategy: 'snapshot',
      claimPropertySets: [{ accessModes: ['ReadWriteOnce'], volumeMode: 'Block' }],
    },
  });
  for (const name of ['a', 'b']) kube.seed(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  kube.seed(deployments, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace: 'bullion-system', name: 'admission' },
    status: { readyReplicas: 2 },
  });
};

export const createMetricsWorld = (): MetricsDeps & { readonly kube: MemoryKube } => {
  const now = () => testTime;
  const kube = createMemoryKube({ now });
  seedImages(kube);
  seedGolden(kube);
  seedStorage(kube);
  return { kube, log: silentLogger, now };
};
