// What is counted of every served kind: how many objects there are, what waits, what failed and why, what nobody reconciles any more.
import type { ResourceType } from '#shared/api/object.ts';
import type { Counter } from '#shared/metrics/counter.ts';
import { gauge } from '#shared/metrics/metric.ts';
import { createTally } from '#shared/metrics/tally.ts';
import type { ReconciledState } from '#shared/resources/reconciler.ts';
import type { ImageState } from '#shared/backends/image.ts';

/** Both groups have a VirtualMachineImage, so kinds are told apart by resource. */
export const resourceOf = ({ plural, group }: ResourceType): string => `${plural}.${group}`;

/** Milliseconds: cron-tick looks at everything each minute, and may be held up for a few. */
const grace = 3 * 60_000;

/** What images and volumes say beyond that. */
type Observed = ReconciledState & Partial<Pick<ImageState, 'lastFailure' | 'attemptsFailed' | 'deadline'>>;

const objects = gauge('bullion_objects', 'Objects, by their phase.');
const unsettled = gauge('bullion_unsettled_objects', 'Objects that something is still to be done for: the queue.');
const failed = gauge('bullion_failed_objects', 'Objects that failed for good, by reason.');
const retrying = gauge('bullion_retrying_objects', 'Objects whose present transfer has failed and is tried again.');
const failures = gauge(
  'bullion_failed_attempts',
  'Attempts that failed over the life of the objects there are, by how the newest one ended.',
);
const overdue = gauge(
  'bullion_overdue_objects',
  'Objects past their deadline that nobody has failed: nobody reconciles them.',
);

/** An attempt after them made it, and what they failed with is not kept. */
const past = ({ phase, reason }: ReconciledState): string => (phase === 'Failed' ? reason : 'Overcome');

/** `kinds` are there with zeroes where they have no object. */
export const createObjectCounter = (kinds: readonly ResourceType[], now: number): Counter => {
  const zeroes = kinds.map((type) => ({ resource: resourceOf(type) }));
  const tallies = {
    objects: createTally(objects),
    unsettled: createTally(unsettled),
    failed: createTally(failed),
    retrying: createTally(retrying, zeroes),
    failures: createTally(failures),
    overdue: createTally(overdue, zeroes),
  };
  const visit: Counter['visit'] = (object, reconciler) => {
    if (reconciler === undefined) return;
    const resource = resourceOf(reconciler.kind.type);
    const subject = reconciler.read(object);
    const state: Observed = subject.state;
    const { phase, reason } = state;
    tallies.objects.add({ resource, phase });
    if (phase === 'Failed') tallies.failed.add({ resource, namespace: object.metadata.namespace ?? '', reason });
    const { failures: count = 0, lastFailure } = state;
    if (count > 0) tallies.failures.add({ resource, reason: lastFailure?.reason ?? past(state) }, count);
    if (!reconciler.isSettled(subject)) queue(resource, state);
  };
  const queue = (resource: string, { reason, attemptsFailed = 0, deadline = '' }: Observed): void => {
    tallies.unsettled.add({ resource, reason });
    if (attemptsFailed > 0) tallies.retrying.add({ resource });
    if (Date.parse(deadline) < now - grace) tallies.overdue.add({ resource });
  };
  return { visit, metrics: () => Object.values(tallies).flatMap((tally) => tally.metrics()) };
};
