// A check of the user's: a Job with a clone of the version, and what its end says of the version. A boot by QEMU is such a Job, too (boot.ts). Pure.
import { findCondition, isTrue } from '#shared/api/conditions.ts';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import type {
  Container,
  EnvVar,
  Job,
  PersistentVolumeClaim,
  Pod,
  PodSpec,
  PodVolume,
} from '#shared/api/foreign/core.ts';
import { disruptionTarget, jobs } from '#shared/api/foreign/core.ts';
import { create } from '#shared/populate/actions.ts';
import { hindranceOf, isComplete, isFailed, isOver } from '#shared/populate/job/attempts.ts';
import { userOf } from '#shared/populate/job/transfer-job.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import {
  type Progress,
  type Proof,
  type ProofRun,
  metadataOf,
  millisecondsOf,
  ownedBy,
  startMs,
} from '#shared/resources/golden-image-policy/proof/run.ts';
import { toSpan } from '#shared/runtime/age.ts';
import { redact } from '#shared/runtime/redact.ts';

type CheckRun = ProofRun<Extract<Proof, { readonly is: 'check' }>>;

const usualMs = 10 * 60_000;
const folder = '/disk';
const device = '/dev/bullion-disk';
/** Of its container. */
const containerName = 'check';
/** Characters of a log that are kept. */
const mostOutput = 2048;
/** Seconds that a finished Job is kept, should nobody remove it. */
const keepSeconds = 3600;

const isBlock = ({ spec }: PersistentVolumeClaim): boolean => spec.volumeMode === 'Block';

const pathOf = (claim: PersistentVolumeClaim): string => (isBlock(claim) ? device : `${folder}/disk.img`);

const environmentOf = ({ proof, found, digest }: CheckRun): readonly EnvVar[] => [
  ...((proof.spec.env ?? []) as readonly EnvVar[]),
  { name: 'BULLION_VERSION', value: found.name },
  { name: 'BULLION_DIGEST', value: digest },
];

/** What a Job runs on a clone. */
export interface JobWork {
  readonly container: Pick<Container, 'image' | 'command' | 'args' | 'env' | 'resources'> & {
    readonly volumeMounts?: Container['volumeMounts'];
  };
  /** Beside that of the clone. */
  readonly volumes?: readonly PodVolume[];
  /** It may change the clone. */
  readonly writes?: boolean;
  readonly imagePullSecrets?: PodSpec['imagePullSecrets'];
  readonly timeoutMs: number;
}

const containerOf = ({ container, writes = false }: JobWork, claim: PersistentVolumeClaim): Container => {
  const { env = [], volumeMounts = [], ...rest } = container;
  const mount = { name: 'disk', mountPath: folder, ...(writes ? {} : { readOnly: true }) };
  const mounts = isBlock(claim) ? volumeMounts : [mount, ...volumeMounts];
  return {
    name: containerName,
    ...rest,
    env: [...env, { name: 'BULLION_DISK', value: pathOf(claim) }],
    ...(isBlock(claim) ? { volumeDevices: [{ name: 'disk', devicePath: device }] } : {}),
    ...(mounts.length === 0 ? {} : { volumeMounts: mounts }),
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
};

/**
 * With no more rights than any pod of the namespace has: its author may create Jobs here (rights.ts), and its account is the one that has no
 * rights unless somebody gave it some, whose token it is not given.
 */
const podOf = (work: JobWork, claim: PersistentVolumeClaim, settings: PopulateSettings): PodSpec => {
  const { imagePullSecrets, timeoutMs, volumes = [] } = work;
  const container = containerOf(work, claim);
  const { nodeSelector, tolerations, priorityClassName } = settings.placement ?? {};
  return {
    restartPolicy: 'Never',
    activeDeadlineSeconds: Math.max(1, Math.ceil(timeoutMs / 1000)),
    serviceAccountName: 'default',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    ...(imagePullSecrets === undefined ? {} : { imagePullSecrets }),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(tolerations === undefined ? {} : { tolerations }),
    ...(priorityClassName === undefined ? {} : { priorityClassName }),
    securityContext: userOf(container, settings),
    containers: [container],
    volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: claim.metadata.name } }, ...volumes],
  };
};

export interface FilledClone {
  readonly clone: DataVolume;
  readonly claim: PersistentVolumeClaim;
}

export const buildJob = (
  run: ProofRun,
  work: JobWork,
  { clone, claim, settings }: FilledClone & { readonly settings: PopulateSettings },
): Job => {
  const metadata = metadataOf(run);
  const ownerReferences = ownedBy(clone);
  const template = { metadata: { labels: metadata.labels ?? {} }, spec: podOf(work, claim, settings) };
  const { activeDeadlineSeconds = 0 } = template.spec;
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { ...metadata, ownerReferences },
    spec: {
      backoffLimit: 0,
      activeDeadlineSeconds: activeDeadlineSeconds + startMs / 1000,
      ttlSecondsAfterFinished: keepSeconds,
      template,
    },
  };
};

const timeoutOf = ({ proof }: CheckRun): number => millisecondsOf(proof.spec.timeout, usualMs);

const workOf = (run: CheckRun): JobWork => {
  const { image, command, args, resources, imagePullSecrets } = run.proof.spec;
  return {
    container: {
      image,
      ...(command === undefined ? {} : { command }),
      ...(args === undefined ? {} : { args }),
      ...(resources === undefined ? {} : { resources }),
      env: environmentOf(run),
    },
    ...(imagePullSecrets === undefined ? {} : { imagePullSecrets }),
    timeoutMs: timeoutOf(run),
  };
};

export const startJob = (run: CheckRun, filled: FilledClone, settings: PopulateSettings): Progress => ({
  is: 'running',
  reason: 'Starting',
  message: 'the check is being started',
  action: create(jobs, buildJob(run, workOf(run), { ...filled, settings })),
});

const stateOf = ({ status }: Pod) => status?.containerStatuses?.find(({ name }) => name === containerName)?.state;

/** What the container left at its end. */
export const lastWordsOf = (pod: Pod): string => stateOf(pod)?.terminated?.message ?? '';

/** The end of what it wrote. */
export const toOutput = (words: string): { readonly output?: string } => {
  const text = redact(words).trim();
  return text === '' ? {} : { output: text.slice(-mostOutput) };
};
const outputOf = (pod: Pod): { readonly output?: string } => toOutput(lastWordsOf(pod));

/** Ends that say nothing of the version: the container never ran, or something else ended it. */
const brokenOff: ReadonlySet<string> = new Set([
  'OOMKilled',
  'ContainerCannotRun',
  'StartError',
  'ContainerStatusUnknown',
]);

const hasRun = (pod: Pod): boolean => {
  const { running, terminated } = stateOf(pod) ?? {};
  return running !== undefined || terminated?.startedAt !== undefined;
};

/** Its time is over: that counts against the version only where the check has run. */
const overdue = (timeoutMs: number, pod: Pod): Progress => {
  const span = toSpan(timeoutMs);
  return hasRun(pod)
    ? { is: 'failed', reason: 'TimedOut', message: `it had not ended after ${span}`, ...outputOf(pod) }
    : { is: 'not run', reason: 'NotStarted', message: `its container had not started after ${span}` };
};

const noResult = (reason: string, message: string): Progress => ({
  is: 'not run',
  reason: reason === '' ? 'NoResult' : reason,
  message:
    reason === 'OOMKilled'
      ? 'it needs more memory than its resources allow'
      : redact(message === '' ? 'its pod ended without a result' : message),
});

const passed = (pod: Pod): Progress => ({ is: 'passed', reason: 'Passed', message: 'exit code 0', ...outputOf(pod) });

const failed = (pod: Pod, exitCode: number): Progress => {
  const last = outputOf(pod).output?.split('\n').at(-1);
  const message = `exit code ${exitCode}${last === undefined ? '' : `: ${last}`}`;
  return { is: 'failed', reason: 'CheckFailed', message, ...outputOf(pod) };
};

/** Somebody ended it: a node is drained, or the pod was deleted. */
const isDisrupted = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp !== undefined || isTrue(status?.conditions, disruptionTarget);

/** Of a pod that nobody ended. */
const ofContainer = (pod: Pod): Progress => {
  const { terminated } = stateOf(pod) ?? {};
  if (terminated === undefined) return noResult('', '');
  const { reason = '', message = '', exitCode } = terminated;
  return brokenOff.has(reason) ? noResult(reason, message) : failed(pod, exitCode);
};

const endOf = (timeoutMs: number, pod: Pod): Progress => {
  const { reason, message = '', phase } = pod.status ?? {};
  if (phase === 'Succeeded') return passed(pod);
  if (reason === 'DeadlineExceeded') return overdue(timeoutMs, pod);
  if (reason !== undefined) return noResult(reason, message);
  return isDisrupted(pod) ? noResult('Disrupted', 'its pod was ended before it had a result') : ofContainer(pod);
};

const startOf = (pod: Pod | undefined): Progress => {
  if (pod !== undefined && hasRun(pod)) return { is: 'running', reason: 'Running', message: 'the check is running' };
  const hindrance = pod === undefined ? undefined : hindranceOf(pod, 'pod');
  return { is: 'running', ...(hindrance ?? { reason: 'Starting', message: 'the check is being started' }) };
};

/** Of a Job that has ended, and has no pod that says how. */
const withoutPod = ({ before }: ProofRun, job: Job): Progress => {
  if (findCondition(job.status?.conditions, 'Failed')?.reason !== 'DeadlineExceeded') return noResult('', '');
  const why = before === undefined || before.reason === 'Running' ? '' : `: ${before.message}`;
  return { is: 'not run', reason: 'NotStarted', message: `it did not start within ${toSpan(startMs)}${why}` };
};

const podsOf = (job: Job, all: readonly Pod[]): readonly Pod[] =>
  all.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === job.metadata.uid));

export const endedPod = (job: Job, all: readonly Pod[]): Pod | undefined => podsOf(job, all).find(isOver);

export const progressOfJob = (
  run: ProofRun,
  { job, pods, timeoutMs }: { readonly job: Job; readonly pods: readonly Pod[]; readonly timeoutMs: number },
): Progress => {
  const own = podsOf(job, pods);
  const ended = own.find(isOver);
  if (ended !== undefined) return endOf(timeoutMs, ended);
  if (isComplete(job)) return { is: 'passed', reason: 'Passed', message: 'exit code 0' };
  return isFailed(job) ? withoutPod(run, job) : startOf(own[0]);
};

export const jobProgress = (run: CheckRun, job: Job, pods: readonly Pod[]): Progress =>
  progressOfJob(run, { job, pods, timeoutMs: timeoutOf(run) });
