import { beforeEach, describe, expect, it } from 'vitest';
import { eventTypes } from '#events/catalogue.ts';
import { type DataSource, type DataSourceSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { handleChildEvent, handleObjectEvent } from '#shared/resources/handle.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

const namespace = 'golden-images';
const population = JSON.stringify({ inspection: { format: 'raw', compression: 'none' }, digests: {} });
const apiVersion = apiVersionOf(dataSourceKind.type);

let deps: ReconcileDeps & { readonly kube: MemoryKube };
let kube: MemoryKube;
let time = Date.parse('2026-03-01T00:00:00Z');
beforeEach(() => {
  deps = { ...createTestReconciler(), now: () => time };
  kube = deps.kube;
});

const seedSource = (source: DataSourceSource, name = 'fedora', metadata: object = {}): DataSource =>
  kube.seed(dataSourceKind.type, {
    apiVersion,
    kind: 'DataSource',
    metadata: { namespace, name, ...metadata },
    spec: { source },
  });

const seedVolume = (over: { readonly status?: object; readonly metadata?: object } = {}): PersistentVolumeClaim =>
  kube.seed(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    spec: {},
    status: { phase: 'Bound' },
    ...over,
    metadata: { namespace, name: 'fedora-1', ...over.metadata },
  } as PersistentVolumeClaim);

const seedDataVolume = (phase: string, status: object = {}) =>
  kube.seed(dataVolumes, {
    apiVersion,
    kind: 'DataVolume',
    metadata: { namespace, name: 'fedora-1' },
    spec: {},
    status: { phase, ...status },
  });

const seedSnapshot = (readyToUse: boolean) =>
  kube.seed(volumeSnapshots, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { namespace, name: 'fedora-1' },
    spec: { source: {} },
    status: { readyToUse },
  });

const look = async (name = 'fedora') => {
  await reconcile(deps, { apiVersion, kind: 'DataSource', namespace, name }, { which: 'all' });
  return (await kube.get(dataSourceKind.type, { namespace, name }))?.status;
};
const conditionOf = async (name?: string) => (await look(name))?.conditions?.[0];

const ours = { labels: { [labels.ownerUid]: 'x' } };
const pvc = { pvc: { name: 'fedora-1' } };
const snapshot = { snapshot: { namespace, name: 'fedora-1' } };

describe('a DataSource', () => {
  const cases: readonly [string, DataSourceSource, () => void, string, string][] = [
    ['of nothing', {}, () => {}, 'NoSource', 'No source PVC set'],
    ['of a volume that is not there', pvc, () => {}, 'NotFound', 'PVC not found'],
    ['of a bound volume', pvc, () => seedVolume(), 'Ready', 'DataSource is ready to be consumed'],
    ['of a pending volume', pvc, () => seedVolume({ status: { phase: 'Pending' } }), 'PVCPending', 'it holds nothing'],
    ['of a volume that is being filled', pvc, () => seedVolume({ metadata: ours }), 'NotPopulated', 'being filled'],
    [
      'of a volume that was filled',
      pvc,
      () => seedVolume({ metadata: { ...ours, annotations: { [annotations.populated]: population } } }),
      'Ready',
      'ready',
    ],
    [
      'of a volume whose import runs',
      pvc,
      () => [seedVolume(), seedDataVolume('ImportInProgress')],
      'ImportInProgress',
      'Import DataVolume phase ImportInProgress',
    ],
    ['of an imported volume', pvc, () => [seedVolume(), seedDataVolume('Succeeded')], 'Ready', 'ready'],
    ['of an import whose volume is gone', pvc, () => seedDataVolume('Succeeded'), 'NotFound', 'PVC not found'],
    ['of no snapshot', snapshot, () => {}, 'NotFound', 'Snapshot not found'],
    [
      'of a snapshot that is not ready',
      snapshot,
      () => seedSnapshot(false),
      'SnapshotNotReady',
      'Snapshot phase is not ready',
    ],
    ['of a snapshot', snapshot, () => seedSnapshot(true), 'Ready', 'ready'],
    ['of itself', { dataSource: { name: 'fedora' } }, () => {}, 'SelfReference', 'cannot self-reference'],
    [
      'of one elsewhere',
      { dataSource: { namespace: 'x', name: 'fedora' } },
      () => {},
      'CrossNamespaceReference',
      'another namespace',
    ],
    ['of one that is not there', { dataSource: { name: 'other' } }, () => {}, 'NotFound', 'DataSource other not found'],
    [
      'of a pointer',
      { dataSource: { name: 'other' } },
      () => seedSource({ dataSource: { name: 'more' } }, 'other'),
      'MaxReferenceDepthReached',
      'maximum depth of 1',
    ],
    [
      'of one of a volume',
      { dataSource: { name: 'other' } },
      () => [seedSource(pvc, 'other'), seedVolume()],
      'Ready',
      'ready',
    ],
  ];
  it.each(cases)('%s', async (...[, source, seed, reason, message]) => {
    seedSource(source);
    seed();
    const status = await look();
    expect(status?.conditions).toMatchObject([{ type: 'Ready', reason, message: expect.stringContaining(message) }]);
    expect(status?.conditions?.[0]?.status).toBe(reason === 'Ready' ? 'True' : 'False');
    expect(status?.source !== undefined).toBe(reason === 'Ready');
  });

  it('leads to its cron while it has nothing', async () => {
    seedSource({}, 'fedora', { labels: { [cdiLabels.cron]: 'nightly' } });
    expect(await conditionOf()).toMatchObject({
      reason: 'NoSource',
      message: `No source PVC set: bullion why dataimportcron/nightly -n ${namespace} says why; with a GoldenImagePolicy, only the DataSources of its channels are set`,
    });
  });

  it('reports what a chain of references resolves to', async () => {
    seedSource({ dataSource: { name: 'other' } });
    seedSource(pvc, 'other');
    seedVolume();
    expect((await look())?.source).toEqual({ pvc: { namespace, name: 'fedora-1' } });
  });

  it('updates its times when something changed, and writes nothing otherwise', async () => {
    seedSource(pvc);
    seedVolume();
    const first = await conditionOf();
    time += 60_000;
    kube.calls.length = 0;
    expect(await conditionOf()).toEqual(first);
    expect(kube.calls.filter(({ verb }) => verb === 'replace' || verb === 'patch')).toEqual([]);
    await kube.delete(persistentVolumeClaims, { namespace, name: 'fedora-1' });
    expect((await conditionOf())?.lastTransitionTime).toBe('2026-03-01T00:01:00Z');
  });

  it('takes over labels that describe how to run the image, but not those of the manager', async () => {
    seedSource(pvc);
    const metadata = {
      labels: {
        'instancetype.kubevirt.io/default-preference': 'fedora',
        'kubevirt.io/dynamic-credentials-support': 'true',
        [cdiLabels.cron]: 'cron',
        [cdiLabels.cleanup]: 'true',
        'app.kubevirt.io/other': 'x',
      },
    };
    seedVolume({ metadata });
    await look();
    expect((await kube.get(dataSourceKind.type, { namespace, name: 'fedora' }))?.metadata.labels).toEqual({
      'instancetype.kubevirt.io/default-preference': 'fedora',
      'kubevirt.io/dynamic-credentials-support': 'true',
    });
  });

  it('is reconciled when a DataVolume that it refers to is populated, whoever created both', async () => {
    seedSource(pvc);
    seedSource({ pvc: { name: 'another' } }, 'other');
    expect(await conditionOf()).toMatchObject({ status: 'False' });
    seedVolume({ metadata: { annotations: { [annotations.populated]: population } } });
    const dataVolume = seedDataVolume('Succeeded', {
      observedGeneration: 1,
      detail: { observedGeneration: 1, phase: 'Available', reason: 'Ready' },
    });
    const event = { id: '1', source: 's', specversion: '1.0', extensions: {} } as const;
    await handleObjectEvent(deps, { ...event, type: eventTypes.objectUpdated, data: dataVolume } as never);
    const conditions = kube.all(dataSourceKind.type).map(({ status }) => status?.conditions?.[0]?.status);
    expect(conditions.filter((status) => status === 'True')).toHaveLength(1);
  });

  it('is reconciled when the volume of its cron changes, followed by those that refer to it', async () => {
    seedSource(pvc, 'fedora', { labels: { [cdiLabels.cron]: 'cron' } });
    seedSource({ dataSource: { name: 'fedora' } }, 'pointer');
    const volume = seedVolume({ metadata: { labels: { [cdiLabels.cron]: 'cron' } } });
    const event = { id: '1', source: 's', specversion: '1.0', extensions: {} } as const;
    await handleChildEvent(deps, { ...event, type: eventTypes.objectAdded, data: volume } as never);
    const source = await kube.get(dataSourceKind.type, { namespace, name: 'fedora' });
    expect(source?.status?.conditions?.[0]?.reason).toBe('Ready');
    await handleObjectEvent(deps, { ...event, type: eventTypes.objectUpdated, data: source } as never);
    const pointer = await kube.get(dataSourceKind.type, { namespace, name: 'pointer' });
    expect(pointer?.status?.conditions?.[0]?.reason).toBe('Ready');
  });
});
