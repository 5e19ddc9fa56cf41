// What every part of the metrics looks like: objects pass by one after the other, and at the end it says what it saw.
import type { KubeObject } from '#shared/api/object.ts';
import type { Metric } from '#shared/metrics/metric.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';

export interface Counter {
  /** `reconciled` for objects of served kinds. */
  readonly visit: (object: KubeObject, reconciler?: Reconciler) => void;
  readonly metrics: () => readonly Metric[];
}
