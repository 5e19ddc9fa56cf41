// Metrics of imports: duration, size and progress of each golden image, and data volumes that fail repeatedly. Pure.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { findCondition, type StatusCondition } from '#shared/api/conditions.ts';
import { type Job, jobs } from '#shared/api/foreign/core.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type Counter, gauge, type Metric } from './metric.ts';
import { resourceOf } from './objects.ts';
import { isQueued } from '#shared/populate/job/attempts.ts';
import { importReconcilerOf } from '#shared/resources/registry.ts';

// Metrics of the queue of transfers: how many wait, and for how long.

const queued = gauge('bullion_queued_transfers', 'Transfers that wait because limits allow no more at once.');
const waits = gauge(
  'bullion_queue_wait_seconds',
  'Seconds that transfers in the queue have waited, or waited before they started, by quantile.',
);

const quantiles = [0.5, 0.99] as const;

const quantileOf = (sorted: readonly number[], quantile: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))] ?? 0;

/** Milliseconds since the epoch. */
export const createQueueCounter = (now: number): Counter => {
  const namespaces = new Map<string, { waiting: number; readonly seconds: number[] }>();
  return {
    visit: (object) => {
      if (object.kind !== jobs.kind) return;
      const job = object as Job;
      const { namespace = '', creationTimestamp = '' } = job.metadata;
      const entry = namespaces.get(namespace) ?? { waiting: 0, seconds: [] };
      namespaces.set(namespace, entry);
      const until = isQueued(job) ? now : Date.parse(job.status?.startTime ?? '');
      if (isQueued(job)) entry.waiting += 1;
      const seconds = (until - Date.parse(creationTimestamp)) / 1000;
      if (!Number.isNaN(seconds)) entry.seconds.push(Math.max(0, seconds));
    },
    metrics: () =>
      [...namespaces].flatMap(([ns, { waiting, seconds }]): readonly Metric[] => {
        const sorted = seconds.toSorted((a, b) => a - b);
        return [
          queued(waiting, { ns }),
          ...quantiles.map((quantile) => waits(quantileOf(sorted, quantile), { ns, quantile: String(quantile) })),
        ];
      }),
  };
};

const seconds = gauge(
  'bullion_import_seconds',
  'Seconds from the creation of an image to its first use, retries and waiting included.',
);
const bytes = gauge('bullion_image_bytes', 'Bytes of the file an image was made from, as published.');
const virtualBytes = gauge('bullion_image_virtual_bytes', 'Bytes of the disk that a guest sees.');
const received = gauge('bullion_transfer_received_bytes', 'Bytes that the running transfer of an image has received.');
const progress = gauge('bullion_import_progress_percent', 'Progress of an image that is not ready yet.');

/** There are too many disks of virtual machines for a metric each, but not too many versions of golden images. */
const isGolden = ({ kind }: ResourceType, { metadata }: KubeObject): boolean =>
  kind !== dataVolumeKind.type.kind || metadata.labels?.[cdiLabels.cron] !== undefined;

interface WithConditions extends KubeObject {
  readonly status?: { readonly conditions?: readonly StatusCondition[] };
}

/** Since when it has been usable; `undefined`: it is not. */
const secondsOf = (object: WithConditions): number | undefined => {
  const ready = findCondition(object.status?.conditions, 'Ready');
  if (ready?.status !== 'True') return undefined;
  const took = Date.parse(ready.lastTransitionTime ?? '') - Date.parse(object.metadata.creationTimestamp ?? '');
  return Number.isNaN(took) ? undefined : took / 1000;
};

const importMetricsOf = (object: KubeObject): readonly Metric[] => {
  const reconciler = importReconcilerOf(object);
  if (reconciler === undefined || !isGolden(reconciler.kind.type, object)) return [];
  const resource = resourceOf(reconciler.kind.type);
  const { phase, inspection, transfer, progress: percent } = reconciler.read(object).state;
  const labels = { resource, namespace: object.metadata.namespace ?? '', name: object.metadata.name };
  const isOver = phase === 'Available' || phase === 'Failed';
  const given: readonly (readonly [typeof bytes, number | undefined])[] = [
    [seconds, secondsOf(object)],
    [bytes, inspection?.size],
    [virtualBytes, inspection?.virtualSize],
    [received, isOver ? undefined : transfer?.receivedBytes],
    [progress, isOver ? undefined : percent],
  ];
  return given.flatMap(([make, value]) => (value === undefined ? [] : [make(value, labels)]));
};

export const createImportCounter = (): Counter => {
  const observed: Metric[] = [];
  return {
    visit: (object) => observed.push(...importMetricsOf(object)),
    metrics: () => observed,
  };
};

// Number of data volumes that are retried repeatedly, with the metric names of the original: CDI counts restarts of its pods, Bullion failed
// attempts of its Jobs.

/** More than this is unusual, as in the original. */
const usualRestarts = 3;

const helpOf = (what: string): string => `DataVolumes whose ${what} failed more than ${usualRestarts} times.`;
const gauges = {
  import: gauge('kubevirt_cdi_import_pods_high_restart', helpOf('import')),
  upload: gauge('kubevirt_cdi_upload_pods_high_restart', helpOf('upload')),
  clone: gauge('kubevirt_cdi_clone_pods_high_restart', helpOf('clone')),
} as const;
type Way = keyof typeof gauges;

const wayOf = ({ source = {}, sourceRef }: DataVolume['spec']): Way => {
  if (source.upload !== undefined) return 'upload';
  const isClone = sourceRef !== undefined || source.pvc !== undefined || source.snapshot !== undefined;
  return isClone ? 'clone' : 'import';
};

export const createRestartCounter = (): Counter => {
  const counts: Record<Way, number> = { import: 0, upload: 0, clone: 0 };
  return {
    visit: (object) => {
      if (object.kind !== dataVolumeKind.type.kind) return;
      const { spec, status } = object as DataVolume;
      const isOver = status?.phase === 'Succeeded';
      if (!isOver && (status?.restartCount ?? 0) > usualRestarts) counts[wayOf(spec)] += 1;
    },
    // Including zeroes: a query that combines them by `or` gets all of them.
    metrics: () => Object.entries(counts).map(([way, count]) => gauges[way as Way](count)),
  };
};
