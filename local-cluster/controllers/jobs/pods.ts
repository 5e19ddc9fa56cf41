// Runs pods: the kubelet of the only node. Containers are child processes that continue while this cluster is down; see process.ts.
import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type PersistentVolumeClaim, type Pod, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { keyOf } from '#shared/api/object.ts';
import { isNotFound } from '#shared/runtime/errors.ts';
import { type Controller, type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';
import { createSay, type Say } from '#local-cluster/controllers/events.ts';
import type { Informer } from '#local-cluster/controllers/informer.ts';
import { type Host, type PodPaths, isLaunched, launchPod, pathsOf } from '#local-cluster/controllers/jobs/launch.ts';
import { type HostVolume, type Obstacle, isObstacle, resolveVolumes } from '#local-cluster/controllers/jobs/mounts.ts';
import {
  type PodStatus,
  isFinished,
  pendingStatus,
  runningStatus,
} from '#local-cluster/controllers/jobs/pod-status.ts';
import { signalProcess } from '#local-cluster/controllers/jobs/process.ts';
import { aliveIn, disruptionFile, killFile, lookAt } from '#local-cluster/controllers/jobs/sighting.ts';
import type { VolumeDirectory } from '#local-cluster/controllers/volumes/directory.ts';

export interface PodOptions extends ControllerContext {
  readonly directory: VolumeDirectory;
  readonly nodeName: string;
  /** Contains one directory per pod, named by its UID. */
  readonly podsDir: string;
  readonly host: Host;
}

export interface PodController extends Controller {
  /**
   * Stops, and ends all processes for a shutdown of the cluster: SIGTERM, `graceMs`, SIGKILL. Their pods get a disruption condition, so that
   * Jobs start new ones at the next start without counting a failure. `stop` alone leaves the processes running.
   */
  readonly drain: (graceMs: number) => Promise<void>;
}

interface Runner extends PodOptions {
  readonly say: Say;
  /** Time of SIGKILL, by pod UID, in milliseconds since the epoch. */
  readonly deadlines: Map<string, number>;
  readonly hint: (uid: string) => void;
}

/** Milliseconds between checks of a running process: its end is noticed earlier, except when it was adopted. */
const lookMs = 500;

export const startPodController = async (options: PodOptions): Promise<PodController> => {
  await mkdir(options.podsDir, { recursive: true });
  let hint = (_uid: string): void => undefined;
  const runner: Runner = {
    ...options,
    say: createSay(options.kube, 'kubelet'),
    deadlines: new Map(),
    hint: (uid) => hint(uid),
  };
  let known: Informer<Pod> | undefined;
  const find = (uid: string): Pod | undefined => known?.all().find((pod) => pod.metadata.uid === uid);

  const controller = startController(
    {
      ...options,
      name: 'pods',
      concurrency: 8,
      reconcile: async (uid) => {
        const pod = find(uid);
        return pod === undefined ? discard(runner, uid) : reconcilePod(runner, pod);
      },
    },
    ({ watch, queue }) => {
      hint = (uid) => queue.add(uid);
      known = watch(pods, ({ metadata: { uid = '' } }) => [uid]);
      // Pods mostly wait for their claim: they start when it is bound, not at the next check.
      watch(persistentVolumeClaims, (claim) => waitingFor(known?.all() ?? [], claim));
    },
  );
  // Directories whose pod was deleted while this cluster was down.
  const leftOver = await readdir(options.podsDir);
  void controller.ready.then(() => leftOver.forEach((uid) => runner.hint(uid)));
  return {
    ...controller,
    drain: async (graceMs) => {
      await controller.stop();
      await drain(runner, known?.all() ?? [], graceMs);
    },
  };
};

const waitingFor = (all: readonly Pod[], { metadata: { namespace, name } }: PersistentVolumeClaim): readonly string[] =>
  all
    .filter(({ metadata, status }) => metadata.namespace === namespace && (status?.phase ?? 'Pending') === 'Pending')
    .filter(({ spec }) => (spec.volumes ?? []).some((volume) => volume.persistentVolumeClaim?.claimName === name))
    .map(({ metadata: { uid = '' } }) => uid);

const dirOf = (runner: Runner, uid: string): PodPaths => pathsOf(join(runner.podsDir, uid));

const reconcilePod = async (runner: Runner, pod: Pod): Promise<number | undefined> => {
  const uid = pod.metadata.uid ?? '';
  const paths = dirOf(runner, uid);
  if (pod.metadata.deletionTimestamp !== undefined) return endPod(runner, pod);
  if (isFinished(pod)) {
    // Logs are kept for users; scratch space is deleted.
    await rm(join(paths.dir, 'volumes'), { recursive: true, force: true });
    return undefined;
  }
  const volumes = await resolveVolumes({ ...runner, podDir: paths.dir }, pod);
  const wasRunning = pod.status?.phase === 'Running';
  if (!isLaunched(paths, pod) && !wasRunning) {
    const obstacle = isObstacle(volumes) ? volumes : await launch(runner, pod, volumes);
    if (obstacle !== undefined) return holdBack(runner, pod, obstacle);
  }
  return report(runner, pod, isObstacle(volumes) ? new Map() : volumes);
};

const launch = (runner: Runner, pod: Pod, volumes: ReadonlyMap<string, HostVolume>): Promise<Obstacle | undefined> => {
  const uid = pod.metadata.uid ?? '';
  return launchPod({ ...runner, paths: dirOf(runner, uid), volumes, onExit: () => runner.hint(uid) }, pod);
};

const holdBack = async (runner: Runner, pod: Pod, obstacle: Obstacle): Promise<number> => {
  const told = pod.status?.containerStatuses?.[0]?.state?.waiting?.message;
  if (told !== obstacle.message) {
    await writeStatus(runner, pod, pendingStatus(pod, obstacle));
    const reason = obstacle.reason === 'ContainerCreating' ? 'FailedMount' : 'Failed';
    await runner.say(pod, { type: 'Warning', reason, message: obstacle.message });
  }
  return 1_000;
};

const report = async (
  runner: Runner,
  pod: Pod,
  volumes: ReadonlyMap<string, HostVolume>,
): Promise<number | undefined> => {
  const paths = dirOf(runner, pod.metadata.uid ?? '');
  await enforceLimits(runner, pod, volumes);
  const status = runningStatus(pod, await lookAt(paths, pod));
  await writeStatus(runner, pod, status);
  return status.phase === 'Succeeded' || status.phase === 'Failed' ? undefined : lookMs;
};

/** Kills a pod that exceeds its deadline or fills a volume beyond its size. The reason is recorded before the process is signalled. */
const enforceLimits = async (runner: Runner, pod: Pod, volumes: ReadonlyMap<string, HostVolume>): Promise<void> => {
  const { uid = '' } = pod.metadata;
  const paths = dirOf(runner, uid);
  const overfull = await findOverfull(runner, volumes);
  const isLate = (await aliveIn(paths)).running.length > 0 && isPastDeadline(pod, Date.now());
  if (overfull === undefined && !isLate) return;
  if (!existsSync(killFile(paths))) {
    const message = overfull ?? 'Pod was active on the node longer than the specified deadline';
    await writeFile(killFile(paths), JSON.stringify({ reason: isLate ? 'DeadlineExceeded' : 'VolumeFull', message }));
  }
  await endProcesses(runner, uid, isLate ? (pod.spec.terminationGracePeriodSeconds ?? 30) * 1000 : 0);
};

const isPastDeadline = ({ spec, status }: Pod, now: number): boolean =>
  spec.activeDeadlineSeconds !== undefined &&
  status?.startTime !== undefined &&
  now > Date.parse(status.startTime) + spec.activeDeadlineSeconds * 1000;

/** Bytes of file system metadata beyond the capacity that the check of the usage tolerates. */
const bookkeeping = (bytes: number): number => bytes * 1.02 + 2 ** 20;

/** A directory has no size limit, so a claim's capacity is enforced by checks of its usage. */
const findOverfull = async (
  { directory }: Runner,
  volumes: ReadonlyMap<string, HostVolume>,
): Promise<string | undefined> => {
  for (const { quota } of volumes.values()) {
    if (quota === undefined) continue;
    const used = await directory.usedBytes(quota.handle);
    if (used > bookkeeping(quota.bytes)) {
      return `claim "${quota.claim}" has ${quota.bytes} bytes of room and holds ${used}: no space left`;
    }
  }
  return undefined;
};

const writeStatus = async ({ kube }: Runner, pod: Pod, status: PodStatus): Promise<void> => {
  if (isDeepStrictEqual(pod.status, { ...pod.status, ...status })) return;
  const patch = { metadata: { uid: pod.metadata.uid }, status };
  try {
    await kube.mergePatch(pods, keyOf(pod), patch, { subresource: 'status' });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
};

/** Being deleted: the processes are ended first, then the object. */
const endPod = async (runner: Runner, pod: Pod): Promise<number | undefined> => {
  const { uid = '', deletionGracePeriodSeconds } = pod.metadata;
  const seconds = deletionGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? 30;
  const again = await endProcesses(runner, uid, seconds * 1000);
  if (again !== undefined) return again;
  if (!isFinished(pod) && isLaunched(dirOf(runner, uid), pod)) {
    await writeStatus(runner, pod, runningStatus(pod, await lookAt(dirOf(runner, uid), pod)));
  }
  await runner.kube.delete(pods, keyOf(pod), { uid, gracePeriodSeconds: 0 });
  return undefined;
};

/** The pod was deleted from the API: its files are deleted too. */
const discard = async (runner: Runner, uid: string): Promise<number | undefined> => {
  const again = await endProcesses(runner, uid, 5_000);
  if (again !== undefined) return again;
  await rm(dirOf(runner, uid).dir, { recursive: true, force: true });
  runner.deadlines.delete(uid);
  return undefined;
};

/** SIGTERM once, SIGKILL after the grace period. `undefined` once none runs; else milliseconds until the next check. */
const endProcesses = async (runner: Runner, uid: string, graceMs: number): Promise<number | undefined> => {
  const paths = dirOf(runner, uid);
  const { running, starting } = await aliveIn(paths);
  if (running.length + starting.length === 0) return undefined;
  // A process that has not recorded its start yet cannot be signalled.
  if (starting.length > 0) return 100;
  const deadline = runner.deadlines.get(uid);
  if (deadline === undefined) runner.deadlines.set(uid, Date.now() + graceMs);
  const isOver = graceMs <= 0 || (deadline !== undefined && Date.now() >= deadline);
  if (deadline !== undefined && !isOver) return 100;
  for (const dir of running) await signalProcess(dir, isOver ? 'SIGKILL' : 'SIGTERM');
  return 100;
};

const drain = async (runner: Runner, known: readonly Pod[], graceMs: number): Promise<void> => {
  const affected: Pod[] = [];
  for (const pod of known.filter((one) => !isFinished(one))) {
    const paths = dirOf(runner, pod.metadata.uid ?? '');
    const { running, starting } = await aliveIn(paths);
    if (running.length + starting.length === 0) continue;
    // Written first: if this shutdown is interrupted, the next start still has the reason why the process ended.
    await writeFile(disruptionFile(paths), '');
    affected.push(pod);
  }
  const deadline = Date.now() + graceMs;
  const endAll = affected.map(async (pod) => {
    const { uid = '' } = pod.metadata;
    while ((await endProcesses(runner, uid, deadline - Date.now())) !== undefined) await sleep(100);
    await writeStatus(runner, pod, runningStatus(pod, await lookAt(dirOf(runner, uid), pod)));
  });
  await Promise.all(endAll);
};
