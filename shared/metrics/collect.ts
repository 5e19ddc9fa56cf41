// All metrics, recomputed from the cluster for each scrape: they survive scale to zero and restarts.
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { deployments } from '#shared/api/foreign/kubernetes.ts';
import { jobs, nodes, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { labels, systemNamespace } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Counter } from '#shared/metrics/metric.ts';
import { createImportCounter, createQueueCounter, createRestartCounter } from './imports.ts';
import { gauge, type Metric } from '#shared/metrics/metric.ts';
import { createObjectCounter, resourceOf } from '#shared/metrics/objects.ts';
import { createStorageCounter } from '#shared/metrics/objects.ts';
import { createOutdatedCounter, createVersionCounter } from '#shared/metrics/objects.ts';
import { createCronCounter } from '#shared/resources/data-import-cron/metrics.ts';
import { createLimitCounter } from '#shared/metrics/limits.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';
import { reconcilers } from '#shared/resources/registry.ts';
import { isNotFound, messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface MetricsDeps {
  readonly kube: KubeClient;
  readonly log: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

const readable = gauge('bullion_exporter_readable', 'Whether all objects of a resource could be read for this scrape.');
const admission = gauge('bullion_admission_replicas', 'Replicas of the admission Deployment that are ready.');

interface Listing {
  readonly type: ResourceType;
  readonly reconciler?: Reconciler;
  /** One listing each, of different objects. Default: all. */
  readonly labelSelectors?: readonly string[];
}

const ofGolden = { labelSelectors: [cdiLabels.cron] };
/** Versions, and disks that were made here. */
const ofDisks = { labelSelectors: [cdiLabels.cron, `${labels.ownerUid},!${cdiLabels.cron}`] };

/** All listed resources; the role of the exporter is generated from this. */
export const listings: readonly Listing[] = [
  ...reconcilers.map((reconciler) => ({ type: reconciler.kind.type, reconciler })),
  { type: persistentVolumeClaims, ...ofDisks },
  { type: volumeSnapshots, ...ofGolden },
  // Of the queue.
  { type: jobs, labelSelectors: [labels.queue] },
  { type: storageClasses },
  { type: nodes },
];

/** A resource that cannot be read does not affect the others. A kind that the cluster does not have has no objects. */
const read = async (
  { kube, log }: MetricsDeps,
  { type, reconciler, labelSelectors }: Listing,
  visit: (object: KubeObject, reconciler: Reconciler | undefined) => void,
): Promise<Metric> => {
  const which = { resource: resourceOf(type) };
  try {
    for (const labelSelector of labelSelectors ?? [undefined])
      for await (const object of kube.listAll(type, { labelSelector })) visit(object, reconciler);
  } catch (error) {
    if (!isNotFound(error)) {
      log.warn('objects not counted', { ...which, error: messageOf(error) });
      return readable(0, which);
    }
  }
  return readable(1, which);
};

/** Of its own, or of one process with every function. */
const admissionDeployments = ['admission', 'bullion'] as const;

/** Missing if there is no such Deployment, as in the local cluster. */
const readAdmission = async ({ kube, log }: MetricsDeps): Promise<readonly Metric[]> => {
  try {
    for (const name of admissionDeployments) {
      const deployment = await kube.get(deployments, { namespace: systemNamespace, name });
      if (deployment !== undefined) return [admission(deployment.status?.readyReplicas ?? 0)];
    }
    return [];
  } catch (error) {
    log.warn('admission Deployment not read', { error: messageOf(error) });
    return [];
  }
};

export const collect = async (deps: MetricsDeps): Promise<readonly Metric[]> => {
  const counters: readonly Counter[] = [
    createObjectCounter(
      reconcilers.map(({ kind }) => kind.type),
      deps.now(),
    ),
    createImportCounter(),
    createCronCounter(),
    createVersionCounter(),
    createOutdatedCounter(),
    createStorageCounter(),
    createRestartCounter(),
    createQueueCounter(deps.now()),
    createLimitCounter(),
  ];
  const readings: Metric[] = [];
  for (const listing of listings) {
    // Sequential: an exporter may be slow, but must not load the API server.
    const state = await read(deps, listing, (object, reconciler) => {
      for (const counter of counters) counter.visit(object, reconciler);
    });
    readings.push(state);
  }
  return [...counters.flatMap((counter) => counter.metrics()), ...readings, ...(await readAdmission(deps))];
};
