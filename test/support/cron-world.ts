// A cron that polls a registry, and its environment: for tests of its versions.
import { beforeEach } from 'vitest';
import { type DataImportCron, type DataImportCronSpec, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { kubeEvents, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { refOf } from '#shared/api/object.ts';
import type { Observation } from '#shared/golden/poll/observation.ts';
import type { ObserveRequest } from '#shared/golden/poll/observe.ts';
import { populatedMark } from '#shared/populate/population.ts';
import { recordObservation } from '#shared/resources/data-import-cron/poll.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

export const namespace = 'golden-images';
export const digestOf = (char: string): string => `sha256:${char.repeat(64)}`;
export const nameOf = (char: string): string => `fedora-${char.repeat(12)}`;
export const minute = 60_000;

export const found = (char: string): Observation => ({
  is: 'found',
  digest: digestOf(char),
  message: `it is ${char}`,
  memory: { sourceDigest: digestOf(char) },
});

export const released: DataImportCronSpec = {
  schedule: '0 */12 * * *',
  managedDataSource: 'fedora',
  importsToKeep: 1,
  template: {
    spec: {
      source: { registry: { url: 'docker://quay.io/containerdisks/fedora:latest', secretRef: 'login' } },
      storage: { resources: { requests: { storage: '5Gi' } } },
    },
  },
};

interface State {
  deps: ReconcileDeps & { readonly kube: MemoryKube };
  kube: MemoryKube;
  /** Milliseconds since the epoch. */
  time: number;
  /** Received polls, oldest first. */
  asked: ObserveRequest[];
  /** The answer of the source. */
  answer: (request: ObserveRequest) => Observation;
}

const begin = (state: State): void => {
  state.time = Date.parse('2026-03-01T00:00:00Z');
  state.asked = [];
  state.answer = () => found('a');
  const observe = (request: ObserveRequest): Promise<Observation> => {
    state.asked.push(request);
    return Promise.resolve(state.answer(request));
  };
  state.deps = { ...createTestReconciler(), now: () => state.time, observe };
  state.kube = state.deps.kube;
  state.kube.edit(storageClasses, { name: 'local' }, ({ metadata }) => {
    metadata.annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  });
};

const readers = (state: State) => {
  const cronNow = (name = 'cron'): DataImportCron =>
    state.kube.all(dataImportCronKind.type).find(({ metadata }) => metadata.name === name)!;
  const namesOf = (type: typeof dataVolumes | typeof persistentVolumeClaims): readonly string[] =>
    state.kube
      .all(type as typeof dataVolumes)
      .map(({ metadata }) => metadata.name)
      .sort();
  return {
    cronNow,
    sourceNow: (): DataSource => state.kube.all(dataSourceKind.type)[0]!,
    importNow: () => state.kube.all(dataVolumes).at(-1)!,
    conditionsOf: (cron = cronNow()) =>
      Object.fromEntries(
        (cron.status?.conditions ?? []).map(({ type, status, reason }) => [type, `${status}/${reason}`]),
      ),
    eventsNow: () => state.kube.all(kubeEvents).map(({ reason }) => reason),
    all: () => ({ imports: namesOf(dataVolumes), volumes: namesOf(persistentVolumeClaims) }),
  };
};

/** The mark of a volume that has its bytes. */
const filled = populatedMark({ inspection: { format: 'raw', compression: 'none' }, digests: {} });

/** What the environment of a containerDisk says of its use, as labels of its volume. */
export const preference = { 'instancetype.kubevirt.io/default-preference': 'fedora' } as const;

/** A volume with the name of an import, labelled accordingly. */
const fill = ({ kube }: State, name: string, { phase, className }: { phase: string; className: string }): void => {
  const dataVolume = kube.all(dataVolumes).find(({ metadata }) => metadata.name === name)!;
  if (kube.all(persistentVolumeClaims).some(({ metadata }) => metadata.name === name)) return;
  kube.seed(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      namespace,
      name,
      labels: { ...preference, [cdiLabels.cron]: dataVolume.metadata.labels?.[cdiLabels.cron] ?? '' },
      ...(phase === 'Succeeded' ? { annotations: filled } : {}),
      ownerReferences: [
        { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name, uid: dataVolume.metadata.uid! },
      ],
    },
    spec: { storageClassName: className, resources: { requests: { storage: '5Gi' } } },
    status: { phase: phase === 'Pending' ? 'Pending' : 'Bound' },
  });
};

/** New for each test. Tests may set its state; it is read on each call. */
export const useCronWorld = () => {
  const state = {} as State;
  beforeEach(() => begin(state));
  const read = readers(state);
  const reconcileCron = (name = 'cron') => reconcile(state.deps, refOf(read.cronNow(name)), { which: 'all' });
  const poll = async (char: string): Promise<void> => {
    state.time += 2 * minute;
    await recordObservation(state.deps, refOf(read.cronNow()), found(char));
  };
  /** Simulates the driver of the data volumes. */
  const finishImport = async (name: string, phase = 'Succeeded', className = 'local'): Promise<void> => {
    fill(state, name, { phase, className });
    state.kube.edit(dataVolumes, { namespace, name }, (object) => {
      const conditions = [{ type: 'Running', status: 'False', message: 'the registry said no' } as const];
      object.status = { phase, conditions, detail: {} };
    });
    await reconcileCron();
    await reconcileCron();
    state.kube.collectGarbage();
  };
  return Object.assign(state, read, {
    aCron: (over: Partial<DataImportCronSpec> = {}, metadata: object = {}): DataImportCron =>
      state.kube.seed(dataImportCronKind.type, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataImportCron',
        metadata: { namespace, name: 'cron', ...metadata },
        spec: { ...released, ...over },
      }),
    reconcileCron,
    poll,
    finishImport,
    importVersion: async (char: string): Promise<void> => {
      await poll(char);
      await finishImport(nameOf(char));
    },
  });
};
