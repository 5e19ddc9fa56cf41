// A proof that a version starts, by a Job with QEMU on a clone of it: where the cluster has no KubeVirt, and for signs that KubeVirt does not report. Pure.
import { parseQuantity } from '#shared/api/quantity.ts';
import { type Job, type Pod, jobs } from '#shared/api/foreign/core.ts';
import { type BootReport, type BootRequest, parseBootReport, usualRunMs, usualTimeoutMs } from '#shared/boot/report.ts';
import { create } from '#shared/populate/actions.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import {
  type FilledClone,
  type JobWork,
  buildJob,
  endedPod,
  lastWordsOf,
  progressOfJob,
  toOutput,
} from '#shared/resources/golden-image-policy/proof/job.ts';
import { type BootRun, bootTimedOut } from '#shared/resources/golden-image-policy/proof/machine.ts';
import { type Progress, millisecondsOf } from '#shared/resources/golden-image-policy/proof/run.ts';
import { parseSpan } from '#shared/runtime/age.ts';

const mib = 2 ** 20;
const usualMemory = '1Gi';
/** MiB of QEMU itself, and of what emulation keeps translated. */
const ownMib = 768;
/** Milliseconds beside those of the guest, for the process to start and to end. */
const ownMs = 60_000;
const scratch = { name: 'scratch', mountPath: '/scratch' } as const;

const memoryMibOf = ({ proof }: BootRun): number =>
  Math.max(1, Math.floor((parseQuantity(proof.spec.memory ?? usualMemory) ?? 0) / mib));

const requestOf = (run: BootRun): BootRequest => {
  const { until = 'AgentConnected', text, port, timeout, runningFor, firmware = 'bios' } = run.proof.spec;
  const timeoutMs = parseSpan(timeout ?? '');
  const runningForMs = parseSpan(runningFor ?? '');
  return {
    until,
    ...(text === undefined ? {} : { text }),
    ...(port === undefined ? {} : { port }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(runningForMs === undefined ? {} : { runningForMs }),
    memoryMib: memoryMibOf(run),
    firmware,
  };
};

/** The process keeps the time of the guest: this is for one that does not. */
const podTimeoutOf = ({ proof: { spec } }: BootRun): number =>
  millisecondsOf(spec.timeout, usualTimeoutMs.emulation) +
  (spec.until === 'Running' ? millisecondsOf(spec.runningFor, usualRunMs) : 0) +
  ownMs;

const workOf = (run: BootRun, { bootImage, kvmResource }: PopulateSettings): JobWork => {
  const memory = `${memoryMibOf(run) + ownMib}Mi`;
  return {
    container: {
      image: bootImage,
      env: [
        { name: 'BULLION_BOOT', value: JSON.stringify(requestOf(run)) },
        { name: 'BULLION_SCRATCH', value: scratch.mountPath },
      ],
      resources: {
        requests: { cpu: '500m', memory },
        limits: { cpu: '2', memory, ...(kvmResource === undefined ? {} : { [kvmResource]: '1' }) },
      },
      volumeMounts: [scratch],
    },
    volumes: [{ name: scratch.name, emptyDir: {} }],
    writes: true,
    timeoutMs: podTimeoutOf(run),
  };
};

export const startBoot = (run: BootRun, filled: FilledClone, settings: PopulateSettings): Progress => ({
  is: 'running',
  reason: 'Starting',
  message: 'the machine is being started by QEMU',
  action: create(jobs, buildJob(run, workOf(run, settings), { ...filled, settings })),
});

const ofReport = (run: BootRun, { outcome, message, console }: BootReport): Progress => {
  const output = toOutput(console);
  switch (outcome) {
    case 'passed':
      return { is: 'passed', reason: 'Booted', message, ...output };
    case 'failed':
      return { is: 'failed', reason: 'BootFailed', message, ...output };
    case 'timed out':
      return bootTimedOut(run, message, output);
    case 'not run':
      return { is: 'not run', reason: 'NotStarted', message, ...output };
  }
};

/** Without a report, the end of its pod says nothing of the version. */
const withoutReport = (progress: Progress): Progress => {
  switch (progress.is) {
    case 'passed':
    case 'failed':
      return {
        ...progress,
        is: 'not run',
        reason: 'NoResult',
        message: `QEMU's pod left no report: ${progress.message}`,
      };
    case 'running':
      return progress.reason === 'Running'
        ? { ...progress, reason: 'Booting', message: 'the machine runs; waiting for its sign' }
        : progress;
    case 'not run':
      return progress;
  }
};

export const bootProgress = (run: BootRun, job: Job, pods: readonly Pod[]): Progress => {
  const ended = endedPod(job, pods);
  const report = ended === undefined ? undefined : parseBootReport(lastWordsOf(ended));
  if (report !== undefined) return ofReport(run, report);
  return withoutReport(progressOfJob(run, { job, pods, timeoutMs: podTimeoutOf(run) }));
};
