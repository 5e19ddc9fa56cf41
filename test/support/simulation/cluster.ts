// The rest of a cluster, as far as images notice it: Job controller, kubelet, provisioner, snapshotter, garbage collector. Each `step` does
// what is due at the present time and no more, so that a simulation decides when things happen.
import { isDeepStrictEqual } from 'node:util';
import {
  type Job,
  type PersistentVolumeClaim,
  type Pod,
  jobs,
  persistentVolumeClaims,
  pods,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import {
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/api/foreign/snapshot.ts';
import type { KubeObject, ObjectRef } from '#shared/api/object.ts';
import { backoffSeconds } from '#shared/populate/transfer-job.ts';
import type { TransferProgress } from '#shared/transfer/progress.ts';
import type { TransferReport } from '#shared/transfer/report.ts';
import { type SimulatedLonghorn, createLonghorn } from '#test/support/simulation/longhorn.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';

/** What a Job of ours does; `clear` removes what an export left in the store. */
export type WorkMode = 'inspect' | 'import' | 'export' | 'clear';

/** How one attempt of a worker goes. */
export interface AttemptScript {
  readonly runMs: number;
  /** What it leaves behind; `killed`: nothing. */
  readonly end: TransferReport | 'killed' | 'never';
  /** The pod never gets a node. */
  readonly unschedulable?: boolean;
}

export interface ClusterOptions {
  readonly kube: MemoryKube;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** `attempt` counts from 1 within a Job. */
  readonly attempt: (mode: WorkMode, attempt: number) => AttemptScript;
  readonly snapshotMs?: number;
  readonly snapshotError?: string;
  readonly onProgress?: (owner: ObjectRef, progress: TransferProgress) => void;
}

/** What really lies on a volume, whatever anybody says about it. */
export interface VolumeContent {
  isFilled: boolean;
  /** Transfers that began to write to it. */
  writers: number;
}

export interface SimulatedCluster {
  /** Does what is due now; whether anything changed. */
  step(): boolean;
  /** Milliseconds since the epoch when something is due next, if nothing else happens. */
  nextWake(): number;
  /** By claim UID. */
  readonly contents: ReadonlyMap<string, VolumeContent>;
  /** Transfers that began on a volume that was filled already. */
  readonly overwrites: readonly string[];
  readonly longhorn: SimulatedLonghorn;
  /** What lies in the object store, by UID of the export. */
  readonly store: { readonly parts: ReadonlySet<string>; readonly objects: ReadonlyMap<string, VolumeContent> };
}

const modes: Readonly<Record<string, WorkMode>> = {
  inspect: 'inspect',
  export: 'export',
  abort: 'clear',
  discard: 'clear',
};

const ownerOf = (pod: Pod): ObjectRef =>
  JSON.parse(pod.spec.containers[0]!.env!.find(({ name }) => name === 'BULLION_OWNER')!.value!) as ObjectRef;

const startMs = 1000;
const progressMs = 3000;

interface Worker {
  readonly startedAt: number;
  readonly script: AttemptScript;
  reported: number;
}

export const createCluster = (options: ClusterOptions): SimulatedCluster => {
  const { kube, now, snapshotMs = 2000 } = options;
  const contents = new Map<string, VolumeContent>();
  const snapshotContents = new Map<string, { readonly isFilled: boolean }>();
  const overwrites: string[] = [];
  const parts = new Set<string>();
  const objects = new Map<string, VolumeContent>();
  const workers = new Map<string, Worker>();
  let podCount = 0;
  let changed = false;
  let wakes: number[] = [];
  kube.onChange(() => (changed = true));

  const iso = (ms: number) => new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
  const later = (at: number) => void (at > now() && wakes.push(at));
  const isOver = (pod: Pod) => pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
  const podsOf = (job: Job) =>
    kube.all(pods).filter((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === job.metadata.uid) === true);
  const ageOf = (object: KubeObject) => now() - Date.parse(object.metadata.creationTimestamp ?? '');
  const endOf = (pod: Pod) => Date.parse(pod.status?.containerStatuses?.[0]?.state?.terminated?.finishedAt ?? '');
  const modeOf = ({ metadata }: Pick<Job, 'metadata'>): WorkMode => modes[metadata.name.split('-')[0]!] ?? 'import';
  const volumeOf = (pod: Pod, of: 'source' | 'target'): string | undefined =>
    pod.spec.volumes?.find(({ name }) => name === of)?.persistentVolumeClaim?.claimName;
  const claimOf = (pod: Pod): PersistentVolumeClaim | undefined => {
    const claimName = volumeOf(pod, 'target');
    return kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === claimName);
  };

  const stepJob = (job: Job) => {
    if ((job.status?.conditions ?? []).length > 0) return;
    const own = podsOf(job);
    const failed = own.filter((pod) => pod.status?.phase === 'Failed');
    const status = jobStatusOf(job, own, failed.length);
    if (!isDeepStrictEqual(status, job.status)) {
      kube.edit(jobs, job.metadata, (edited) => void Object.assign(edited, { status }));
    }
    if (status.active === 1 || status.conditions !== undefined) return;
    const due = Math.max(0, ...failed.map(endOf)) + (failed.length === 0 ? 0 : backoffSeconds(failed.length) * 1000);
    if (due > now()) return later(due);
    startPod(job);
  };

  const jobStatusOf = (job: Job, own: readonly Pod[], failed: number): NonNullable<Job['status']> => {
    const condition = (type: 'Complete' | 'Failed', reason: string) => [
      { type, status: 'True' as const, reason, message: reason, lastTransitionTime: iso(now()) },
    ];
    const running = {
      startTime: job.status?.startTime ?? iso(now()),
      active: own.some((pod) => !isOver(pod)) ? 1 : 0,
      ...(failed === 0 ? {} : { failed }),
    };
    if (own.some((pod) => pod.status?.phase === 'Succeeded')) {
      return { ...running, succeeded: 1, conditions: condition('Complete', 'CompletionsReached') };
    }
    const isExhausted = failed > (job.spec.backoffLimit ?? 6);
    return isExhausted ? { ...running, conditions: condition('Failed', 'BackoffLimitExceeded') } : running;
  };

  const startPod = (job: Job) => {
    podCount += 1;
    const suffix = podCount.toString(36).padStart(5, '0');
    kube.seed(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `${job.metadata.name}-${suffix}`,
        namespace: job.metadata.namespace!,
        ...(job.spec.template.metadata?.labels && { labels: job.spec.template.metadata.labels }),
        ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: job.metadata.name, uid: job.metadata.uid! }],
      },
      spec: job.spec.template.spec,
      status: { phase: 'Pending' },
    });
  };

  const stepPod = (pod: Pod) => {
    if (isOver(pod)) return;
    const worker = workers.get(pod.metadata.uid!);
    if (worker === undefined) return startWorker(pod);
    const elapsed = now() - worker.startedAt;
    reportProgress(pod, worker, elapsed);
    if (worker.script.end === 'never') return;
    if (elapsed < worker.script.runMs) return later(worker.startedAt + worker.script.runMs);
    endWorker(pod, worker.script.end);
  };

  const startWorker = (pod: Pod) => {
    const job = kube.all(jobs).find(({ metadata }) => metadata.uid === pod.metadata.ownerReferences?.[0]?.uid);
    if (job === undefined) return;
    const attempt = podsOf(job).filter(isOver).length + 1;
    const script = options.attempt(modeOf(job), attempt);
    if (script.unschedulable === true) return block(pod);
    const needsVolume = modeOf(job) === 'import';
    const claim = claimOf(pod);
    if (needsVolume && (claim === undefined || claim.status?.phase !== 'Bound')) return;
    if (ageOf(pod) < startMs) return later(Date.parse(pod.metadata.creationTimestamp!) + startMs);
    if (modeOf(job) === 'export' && isUnbound(volumeOf(pod, 'source'))) return;
    if (modeOf(job) === 'export') parts.add(ownerOf(pod).uid);
    workers.set(pod.metadata.uid!, { startedAt: now(), script, reported: 0 });
    if (needsVolume) beginWriting(claim!, pod);
    kube.edit(pods, pod.metadata, (edited) => {
      const state = { running: { startedAt: iso(now()) } };
      edited.status = { phase: 'Running', containerStatuses: [{ name: 'transfer', state }] };
    });
  };

  const isUnbound = (claimName: string | undefined): boolean =>
    !kube
      .all(persistentVolumeClaims)
      .some(({ metadata, status }) => metadata.name === claimName && status?.phase === 'Bound');

  /** A worker that can still say how it ended has aborted what it began. */
  const endUpload = (pod: Pod, mode: WorkMode, end: TransferReport) => {
    const { uid } = ownerOf(pod);
    const isDone = end.outcome === 'succeeded';
    if (mode === 'export' || (mode === 'clear' && isDone)) parts.delete(uid);
    const content = contentOf(volumeOf(pod, 'source'));
    if (mode === 'export' && isDone) objects.set(uid, content ?? { isFilled: false, writers: 0 });
  };

  const beginWriting = (claim: PersistentVolumeClaim, pod: Pod) => {
    const content = contents.get(claim.metadata.uid!) ?? { isFilled: false, writers: 0 };
    if (content.isFilled) overwrites.push(`${pod.metadata.name} writes to ${claim.metadata.name}, which is filled`);
    contents.set(claim.metadata.uid!, { isFilled: false, writers: content.writers + 1 });
  };

  const block = (pod: Pod) =>
    kube.edit(pods, pod.metadata, (edited) => {
      const message = '0/3 nodes are available: 3 Insufficient memory.';
      edited.status = {
        phase: 'Pending',
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
      };
    });

  const reportProgress = (pod: Pod, worker: Worker, elapsed: number) => {
    const due = Math.floor(elapsed / progressMs);
    if (worker.script.end !== 'never') later(worker.startedAt + (due + 1) * progressMs);
    if (due <= worker.reported) return;
    worker.reported = due;
    const share = Math.min(0.99, elapsed / worker.script.runMs);
    const owner = ownerOf(pod);
    const isImport = modeOf({ metadata: pod.metadata }) === 'import';
    const importPhase = share < 0.6 ? 'Downloading' : share < 0.9 ? 'Converting' : 'Verifying';
    options.onProgress?.(owner, {
      run: pod.metadata.name,
      startedAt: iso(worker.startedAt),
      sequence: due,
      phase: isImport ? importPhase : 'Inspecting',
      percent: Math.floor(share * 100),
      receivedBytes: Math.floor(share * 1000),
    });
  };

  const endWorker = (pod: Pod, end: TransferReport | 'killed') => {
    const isSuccess = end !== 'killed' && (end.outcome === 'succeeded' || !end.retryable);
    const claim = claimOf(pod);
    if (end !== 'killed') endUpload(pod, modeOf({ metadata: pod.metadata }), end);
    if (end !== 'killed' && end.outcome === 'succeeded' && claim !== undefined) {
      const source = volumeOf(pod, 'source');
      const isFilled = source === undefined || contentOf(source)?.isFilled === true;
      contents.set(claim.metadata.uid!, { writers: 1, ...contents.get(claim.metadata.uid!), isFilled });
    }
    kube.edit(pods, pod.metadata, (edited) => {
      const exitCode = end === 'killed' ? 137 : isSuccess ? 0 : 1;
      const message = end === 'killed' ? {} : { message: JSON.stringify(end) };
      const terminated = { exitCode, finishedAt: iso(now()), ...message };
      edited.status = {
        phase: isSuccess ? 'Succeeded' : 'Failed',
        containerStatuses: [{ name: 'transfer', state: { terminated } }],
      };
    });
  };

  const stepVolume = (claim: PersistentVolumeClaim) => {
    const users = kube.all(pods).filter((pod) => !isOver(pod) && claimOf(pod)?.metadata.uid === claim.metadata.uid);
    if (claim.metadata.deletionTimestamp !== undefined) {
      if (users.length > 0) return;
      kube.edit(persistentVolumeClaims, claim.metadata, (edited) => {
        edited.metadata.finalizers = (edited.metadata.finalizers ?? []).filter(
          (name) => !name.endsWith('pvc-protection'),
        );
      });
      return;
    }
    if (claim.status?.phase === 'Bound') return;
    const storageClass = kube.all(storageClasses).find(({ metadata }) => metadata.name === claim.spec.storageClassName);
    if (storageClass === undefined) return;
    if (storageClass.volumeBindingMode === 'WaitForFirstConsumer' && users.length === 0) return;
    const origin = originOf(claim);
    if (origin === 'not ready') return;
    if (origin !== undefined) contents.set(claim.metadata.uid!, { isFilled: origin.isFilled, writers: 0 });
    kube.edit(persistentVolumeClaims, claim.metadata, (edited) => {
      edited.status = { phase: 'Bound', capacity: edited.spec.resources?.requests ?? {} };
      const provisioner = { 'volume.kubernetes.io/storage-provisioner': storageClass.provisioner };
      edited.metadata.annotations = { ...edited.metadata.annotations, ...provisioner };
    });
  };

  /** What the storage fills a claim from; `undefined` for an empty one. */
  const originOf = ({ spec }: PersistentVolumeClaim): { readonly isFilled: boolean } | 'not ready' | undefined => {
    if (spec.dataSource === undefined) return undefined;
    const { kind, name } = spec.dataSource;
    if (kind === 'VolumeSnapshot') return snapshotContents.get(name) ?? 'not ready';
    return contentOf(name) ?? 'not ready';
  };

  const contentOf = (claimName: string | undefined): VolumeContent | undefined => {
    const claim = kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === claimName);
    return claim === undefined ? undefined : contents.get(claim.metadata.uid!);
  };

  const claimNamed = (name: string | undefined) =>
    kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === name);

  const readyStatus = ({ metadata, spec }: VolumeSnapshot) => {
    const { storage: restoreSize } = claimNamed(spec.source.persistentVolumeClaimName)?.spec.resources?.requests ?? {};
    const size = restoreSize === undefined ? {} : { restoreSize };
    return { readyToUse: true, boundVolumeSnapshotContentName: `content-of-${metadata.uid}`, ...size };
  };

  const bindSnapshot = ({ metadata, spec }: VolumeSnapshot) => {
    const claim = claimNamed(spec.source.persistentVolumeClaimName);
    const storageClass = kube
      .all(storageClasses)
      .find(({ metadata: { name } }) => name === claim?.spec.storageClassName);
    kube.seed(volumeSnapshotContents, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshotContent',
      metadata: { name: `content-of-${metadata.uid}` },
      spec: { driver: storageClass?.provisioner ?? '', sourceVolumeMode: claim?.spec.volumeMode ?? 'Filesystem' },
    } as VolumeSnapshotContent);
  };

  const stepSnapshots = () => {
    for (const snapshot of kube.all(volumeSnapshots)) {
      if (snapshot.status?.readyToUse === true || snapshot.status?.error !== undefined) continue;
      if (ageOf(snapshot) < snapshotMs) {
        later(Date.parse(snapshot.metadata.creationTimestamp!) + snapshotMs);
        continue;
      }
      kube.edit(volumeSnapshots, snapshot.metadata, (edited) => {
        const { snapshotError: message } = options;
        const content = contentOf(snapshot.spec.source.persistentVolumeClaimName);
        snapshotContents.set(snapshot.metadata.name, { isFilled: content?.isFilled === true });
        edited.status = message === undefined ? readyStatus(snapshot) : { readyToUse: false, error: { message } };
      });
      if (options.snapshotError === undefined) bindSnapshot(snapshot);
    }
  };

  const longhorn = createLonghorn({ kube, now, attempt: options.attempt, later });

  return {
    contents,
    overwrites,
    longhorn,
    store: { parts, objects },
    step: () => {
      changed = false;
      wakes = [];
      for (const job of kube.all(jobs)) stepJob(job);
      for (const pod of kube.all(pods)) stepPod(pod);
      for (const claim of kube.all(persistentVolumeClaims)) stepVolume(claim);
      stepSnapshots();
      longhorn.step();
      kube.collectGarbage();
      return changed;
    },
    nextWake: () => Math.min(Infinity, ...wakes),
  };
};
