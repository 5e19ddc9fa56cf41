// A cluster in which every metric has a sample: for tests of the exporter, its alerts and its dashboard.
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { deployments } from '#shared/api/foreign/kubernetes.ts';
import { nodes, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { annotations, labels } from '#shared/api/names.ts';
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

const populated = (digest: string) => ({
  [annotations.populated]: JSON.stringify({
    inspection: { format: 'raw', compression: 'none' },
    digests: { sha256: digest },
  }),
});

/** A channel of a policy that offers the newest of two versions, and a disk of each. */
const seedDisks = (kube: MemoryKube): void => {
  const namespace = 'channels';
  kube.seed(goldenImagePolicyKind.type, {
    apiVersion: 'bullion.dev/v1alpha1',
    kind: 'GoldenImagePolicy',
    metadata: { namespace, name: 'debian' },
    spec: { dataImportCrons: { names: ['debian'] }, channels: [{ name: 'stable', dataSource: 'debian' }] },
  });
  kube.seed(dataSourceKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataSource',
    metadata: { namespace, name: 'debian', labels: { [cdiLabels.cron]: 'debian', [labels.policy]: 'debian' } },
    spec: { source: { pvc: { namespace, name: 'debian-2' } } },
  });
  const claim = (name: string, digest: string, marks: Readonly<Record<string, string>>) =>
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace, name, labels: marks, annotations: populated(digest) },
      spec: {},
    });
  for (const name of ['debian-1', 'debian-2'])
    claim(name, name, { [cdiLabels.cron]: 'debian', [labels.ownerUid]: 'cron' });
  for (const [name, digest] of [
    ['old', 'debian-1'],
    ['new', 'debian-2'],
  ] as const) {
    const { metadata } = kube.seed(dataVolumes, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace, name },
      spec: { sourceRef: { kind: 'DataSource', name: 'debian' }, storage: {} },
      status: { phase: 'Succeeded' },
    } as never);
    claim(name, digest, { [labels.ownerUid]: metadata.uid ?? '' });
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
  seedDisks(kube);
  seedStorage(kube);
  return { kube, log: silentLogger, now };
};
