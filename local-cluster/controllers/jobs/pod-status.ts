// The status of a pod, derived from the state of its processes. Pure.
import type { ContainerStatus, Pod } from '#shared/api/foreign/core.ts';
import type { Condition } from '#shared/api/object.ts';
import { podAddressOf } from '#local-cluster/controllers/jobs/environment.ts';
import type { Obstacle } from '#local-cluster/controllers/jobs/mounts.ts';
import type { ProcessState } from '#local-cluster/controllers/jobs/process.ts';

export type PodStatus = NonNullable<Pod['status']>;

/** The observed state of one container. */
export interface ContainerSeen {
  readonly name: string;
  readonly image: string;
  readonly state: ProcessState;
  /** The content of its termination message path. */
  readonly message?: string | undefined;
}

export interface PodSeen {
  readonly containers: readonly ContainerSeen[];
  /** The pod was stopped by a shutdown of the cluster: not a failure of the pod. */
  readonly disrupted: boolean;
  /** Why the runner itself ended the pod. */
  readonly killed?: { readonly reason: string; readonly message: string } | undefined;
}

/** A pod condition that reports a cause outside of the pod. Jobs do not count such a pod as a failure. */
export const disruptionTarget = 'DisruptionTarget';

export const isDisrupted = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === disruptionTarget && status === 'True') ?? false;

export const isFinished = (pod: Pod): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';

/** Whole seconds, as in Kubernetes. */
export const timeText = (date: Date): string => `${date.toISOString().slice(0, 19)}Z`;

/** The status of a pod that cannot start yet. */
export const pendingStatus = (pod: Pod, obstacle: Obstacle): PodStatus => ({
  phase: 'Pending',
  conditions: [readiness('PodScheduled', true, pod), readiness('Ready', false, pod)],
  containerStatuses: pod.spec.containers.map(({ name, image }) =>
    statusOf({ name, image }, { waiting: { reason: obstacle.reason, message: obstacle.message } }),
  ),
});

export const runningStatus = (pod: Pod, seen: PodSeen): PodStatus => {
  const phase = phaseOf(seen);
  const isRunning = phase === 'Running';
  const disrupted: Condition = {
    type: disruptionTarget,
    status: 'True',
    reason: 'TerminationByKubelet',
    message: 'the local cluster was shut down while the pod was running',
    lastTransitionTime: timeText(new Date()),
  };
  return {
    phase,
    podIP: podAddressOf(pod),
    ...(phase === 'Failed' && seen.killed !== undefined ? seen.killed : {}),
    startTime: startOf(seen),
    conditions: [
      readiness('PodScheduled', true, pod),
      readiness('Initialized', true, pod),
      readiness('ContainersReady', isRunning, pod),
      readiness('Ready', isRunning, pod),
      ...(phase === 'Failed' && seen.disrupted ? [disrupted] : []),
    ],
    containerStatuses: seen.containers.map((container) => statusOf(container, stateOf(container))),
  };
};

const phaseOf = ({ containers, killed }: PodSeen): NonNullable<PodStatus['phase']> => {
  const isOver = ({ state }: ContainerSeen): boolean => state.kind === 'ended' || state.kind === 'vanished';
  if (!containers.every(isOver))
    return containers.some(({ state }) => state.kind === 'running') ? 'Running' : 'Pending';
  const isFine = containers.every(({ state }) => state.kind === 'ended' && state.exitCode === 0);
  return isFine && killed === undefined ? 'Succeeded' : 'Failed';
};

const startOf = ({ containers }: PodSeen): string => {
  const times = containers.map(({ state }) => ('startedAt' in state ? state.startedAt : new Date()));
  return timeText(times.toSorted((a, b) => a.getTime() - b.getTime())[0] ?? new Date());
};

/** Exit code of a process that was killed or lost: 128 and the number of SIGKILL. */
const lostExitCode = 137;

const stateOf = ({ state, message }: ContainerSeen): NonNullable<ContainerStatus['state']> => {
  const said = message === undefined || message === '' ? {} : { message };
  switch (state.kind) {
    case 'absent':
    case 'starting':
      return { waiting: { reason: 'ContainerCreating' } };
    case 'running':
      return { running: { startedAt: timeText(state.startedAt) } };
    case 'ended':
      return {
        terminated: {
          exitCode: state.exitCode,
          reason: state.exitCode === 0 ? 'Completed' : 'Error',
          startedAt: timeText(state.startedAt),
          finishedAt: timeText(state.finishedAt),
          ...said,
        },
      };
    case 'vanished':
      return {
        terminated: {
          exitCode: lostExitCode,
          reason: 'ContainerStatusUnknown',
          message:
            message ?? 'the process has disappeared without an exit code: it was killed, or the machine restarted',
          startedAt: timeText(state.startedAt),
          finishedAt: timeText(new Date()),
        },
      };
  }
};

const statusOf = (
  { name, image }: { readonly name: string; readonly image: string },
  state: NonNullable<ContainerStatus['state']>,
): ContainerStatus => ({
  name,
  image,
  imageID: `local/${image}`,
  restartCount: 0,
  ready: state.running !== undefined,
  started: state.running !== undefined,
  state,
});

/** Keeps the transition time of an unchanged condition. */
const readiness = (type: string, isTrue: boolean, pod: Pod): Condition => {
  const status = isTrue ? 'True' : 'False';
  const known = pod.status?.conditions?.find((condition) => condition.type === type);
  const since = known?.status === status ? known.lastTransitionTime : undefined;
  return { type, status, lastTransitionTime: since ?? timeText(new Date()) };
};
