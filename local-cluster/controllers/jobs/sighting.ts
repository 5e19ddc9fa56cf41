// The observed state of a pod on the node: its processes, their exit codes, and what the runner recorded about them. Used by pods.ts.
import { existsSync } from 'node:fs';
import { open, readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '#shared/api/foreign/core.ts';
import type { PodPaths } from '#local-cluster/controllers/jobs/launch.ts';
import type { ContainerSeen, PodSeen } from '#local-cluster/controllers/jobs/pod-status.ts';
import { lookAtProcess } from '#local-cluster/controllers/jobs/process.ts';

export const lookAt = async (paths: PodPaths, pod: Pod): Promise<PodSeen> => {
  const containers: ContainerSeen[] = [];
  for (const { name, image, terminationMessagePolicy } of pod.spec.containers) {
    const state = await lookAtProcess(paths.container(name));
    const hasFailed = state.kind === 'ended' && state.exitCode !== 0;
    const isLost = state.kind === 'absent' && pod.status?.phase === 'Running';
    containers.push({
      name,
      image,
      state: isLost ? { kind: 'vanished', startedAt: new Date(pod.status?.startTime ?? Date.now()) } : state,
      message:
        (await readTerminationLog(paths.terminationLog(name))) ??
        (hasFailed && terminationMessagePolicy === 'FallbackToLogsOnError'
          ? await endOfLog(paths.log(name))
          : undefined),
    });
  }
  return { containers, disrupted: existsSync(disruptionFile(paths)), killed: await readKillFile(paths) };
};

/** Why the runner itself ended the pod, if it did. */
export const killFile = (paths: PodPaths): string => join(paths.dir, 'killed.json');

const readKillFile = async (paths: PodPaths): Promise<PodSeen['killed']> => {
  const text = await readFile(killFile(paths), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as PodSeen['killed']);
};

/** Kubernetes limits it to this many bytes. */
const terminationLogBytes = 4096;

const readTerminationLog = async (path: string): Promise<string | undefined> => {
  if (!existsSync(path)) return undefined;
  await using file = await open(path, 'r');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(terminationLogBytes), 0, terminationLogBytes, 0);
  return bytesRead === 0 ? undefined : buffer.subarray(0, bytesRead).toString();
};

/** As many lines and bytes as the kubelet takes in place of a termination message. */
const endOfLog = async (path: string): Promise<string> => {
  const text = await readFile(path).catch(() => Buffer.alloc(0));
  return text.subarray(-2048).toString().split('\n').slice(-81).join('\n');
};

/** Directories of the running processes, and of those that have not recorded their start yet. */
export const aliveIn = async (paths: PodPaths): Promise<Record<'running' | 'starting', readonly string[]>> => {
  const names = await readdir(join(paths.dir, 'containers')).catch(() => []);
  const running: string[] = [];
  const starting: string[] = [];
  for (const name of names) {
    const { kind } = await lookAtProcess(paths.container(name));
    if (kind === 'running') running.push(paths.container(name));
    if (kind === 'starting') starting.push(paths.container(name));
  }
  return { running, starting };
};

/** Exists while the runner ends the pod for reasons of its own. */
export const disruptionFile = (paths: PodPaths): string => join(paths.dir, 'disrupted');
