// Determines the size of a disk if the user did not request one: a Job inspects the source before anything is created. Called by plans of
// backends and of volumes.
import { type Job, type KubeEvent, type Pod, jobs } from '#shared/api/foreign/core.ts';
import { create, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { followTransfer } from '#shared/populate/job/following.ts';
import type { Filled, ImageState } from '#shared/populate/filled.ts';
import { failedState, retryHint, waitingState } from '#shared/populate/state.ts';
import { type SucceededRun, readTransfer } from '#shared/populate/job/attempts.ts';
import type { Inspection } from '#shared/transfer/report.ts';

export interface Looking {
  /** The inspection Job, if it exists. */
  readonly job: Job | undefined;
  /** Its result, if it was read from the pods without the Job. */
  readonly looked?: SucceededRun | undefined;
  readonly pods: readonly Pod[];
  /** Warning events of the cluster, newest first: why no pod starts. */
  readonly warnings?: readonly KubeEvent[] | undefined;
  readonly build: () => Job;
}

export type Looked =
  | { readonly is: 'planned'; readonly plan: Plan }
  | { readonly is: 'known'; readonly diskBytes: number; readonly inspection: Inspection; readonly state: ImageState };

export const planInspection = (image: Filled, looking: Looking, context: PlanContext): Looked => {
  const { job, looked, pods, warnings, build } = looking;
  if (looked !== undefined) return readLook(image, looked);
  if (job === undefined) return planned(startInspection(image, build(), context));
  const run = readTransfer(job, pods, context.now);
  return run.is === 'succeeded'
    ? readLook(image, run)
    : planned(followTransfer(image, { job, run, warnings }, context));
};

const readLook = (image: Filled, { report: { inspection } }: SucceededRun): Looked => {
  const state = { ...image.state, inspection };
  if (inspection.virtualSize !== undefined)
    return { is: 'known', diskBytes: inspection.virtualSize, inspection, state };
  const message = `the size of the disk cannot be read from the source: set a size in spec; ${retryHint}`;
  return planned({ actions: [], state: failedState(state, 'SizeUnknown', message) });
};

const planned = (plan: Plan): Looked => ({ is: 'planned', plan });

const startInspection = (image: Filled, job: Job, context: PlanContext): Plan => {
  const step = { phase: 'Pending', reason: 'Inspecting', message: 'inspecting the source to find its size' } as const;
  const next = withJob(image.state, { job: job.metadata.name });
  return { actions: [create(jobs, job)], state: waitingState(image, next, step, context) };
};

/** The state at the start of a new transfer: counters and reports of the previous one are reset. */
export const withJob = (state: ImageState, made: { readonly job?: string; readonly volume?: string }): ImageState => ({
  ...state,
  attempts: 0,
  attemptsFailed: 0,
  lastFailure: undefined,
  transfer: undefined,
  progress: 0,
  children: { ...state.children, job: made.job, ...(made.volume === undefined ? {} : { volume: made.volume }) },
});
