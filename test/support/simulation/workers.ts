// The kubelet and the workers in the pods of our Jobs: they start, report progress, fill volumes, and end as scripted.
import { type Job, type PersistentVolumeClaim, type Pod, jobs, pods } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { TransferProgress, TransferReport } from '#shared/transfer/report.ts';
import type { AttemptScript, Attempts, WorkMode } from '#test/support/simulation/attempts.ts';
import { isOver, podsOf } from '#test/support/simulation/jobs.ts';
import { type ClusterRecord, claimNamed, contentOf, creationOf, iso } from '#test/support/simulation/record.ts';

export interface WorkerOptions {
  readonly attempt: Attempts;
  readonly onProgress?: (owner: ObjectRef, progress: TransferProgress) => void;
}

interface Worker {
  readonly startedAt: number;
  readonly script: AttemptScript;
  reported: number;
}

const startMs = 1000;
const progressMs = 3000;
const checkMs = 5000;

const modes: Readonly<Record<string, WorkMode>> = {
  inspect: 'inspect',
  export: 'export',
  abort: 'clear',
  discard: 'clear',
};

/** Pods are named after their Job. */
const modeOf = ({ metadata }: Pick<Job, 'metadata'>): WorkMode => modes[metadata.name.split('-')[0]!] ?? 'import';

const ownerOf = (pod: Pod): ObjectRef =>
  JSON.parse(pod.spec.containers[0]!.env!.find(({ name }) => name === 'BULLION_OWNER')!.value!) as ObjectRef;

const volumeOf = (pod: Pod, of: 'source' | 'target' | 'disk'): string | undefined =>
  pod.spec.volumes?.find(({ name }) => name === of)?.persistentVolumeClaim?.claimName;

/** The volume that a pod fills. */
export const targetOf = (record: ClusterRecord, pod: Pod): PersistentVolumeClaim | undefined =>
  claimNamed(record, volumeOf(pod, 'target'));

const isBound = (claim: PersistentVolumeClaim | undefined): claim is PersistentVolumeClaim =>
  claim?.status?.phase === 'Bound';

/** Steps one pod. */
export const createWorkers = (record: ClusterRecord, { attempt, onProgress }: WorkerOptions): ((pod: Pod) => void) => {
  const { kube, now, later, contents, overwrites, store } = record;
  const workers = new Map<string, Worker>();

  const start = (pod: Pod) => {
    const job = kube.all(jobs).find(({ metadata }) => metadata.uid === pod.metadata.ownerReferences?.[0]?.uid);
    if (job === undefined) return;
    const mode = modeOf(job);
    const script = attempt(mode, podsOf(kube, job).filter(isOver).length + 1);
    if (script.unschedulable === true) return block(pod);
    const target = targetOf(record, pod);
    if (mode === 'import' && !isBound(target)) return;
    if (now() - creationOf(pod) < startMs) return later(creationOf(pod) + startMs);
    if (mode === 'export' && !isBound(claimNamed(record, volumeOf(pod, 'source')))) return;
    if (mode === 'export') store.parts.add(ownerOf(pod).uid);
    workers.set(pod.metadata.uid!, { startedAt: now(), script, reported: 0 });
    if (mode === 'import') beginWriting(target!, pod);
    kube.edit(pods, pod.metadata, (edited) => {
      const state = { running: { startedAt: iso(now()) } };
      edited.status = { phase: 'Running', containerStatuses: [{ name: 'transfer', state }] };
    });
  };

  const block = (pod: Pod) =>
    kube.edit(pods, pod.metadata, (edited) => {
      const message = '0/3 nodes are available: 3 Insufficient memory.';
      edited.status = {
        phase: 'Pending',
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
      };
    });

  const beginWriting = (claim: PersistentVolumeClaim, pod: Pod) => {
    const content = contents.get(claim.metadata.uid!) ?? { isFilled: false, writers: 0 };
    if (content.isFilled) overwrites.push(`${pod.metadata.name} writes to ${claim.metadata.name}, which is filled`);
    contents.set(claim.metadata.uid!, { isFilled: false, writers: content.writers + 1 });
  };

  const reportProgress = (pod: Pod, worker: Worker, elapsed: number) => {
    const due = Math.floor(elapsed / progressMs);
    if (worker.script.end !== 'never') later(worker.startedAt + (due + 1) * progressMs);
    // Copies for others report no progress.
    if (due <= worker.reported || pod.metadata.name.startsWith('keep-')) return;
    worker.reported = due;
    const share = Math.min(0.99, elapsed / worker.script.runMs);
    const importPhase = share < 0.6 ? 'Downloading' : share < 0.9 ? 'Converting' : 'Verifying';
    onProgress?.(ownerOf(pod), {
      run: pod.metadata.name,
      startedAt: iso(worker.startedAt),
      sequence: due,
      phase: modeOf(pod) === 'import' ? importPhase : 'Inspecting',
      percent: Math.floor(share * 100),
      receivedBytes: Math.floor(share * 1000),
    });
  };

  /** A worker that ends regularly has aborted its upload. */
  const endUpload = (pod: Pod, isDone: boolean) => {
    const mode = modeOf(pod);
    const { uid } = ownerOf(pod);
    if (mode === 'export' || (mode === 'clear' && isDone)) store.parts.delete(uid);
    const content = contentOf(record, volumeOf(pod, 'source'));
    if (mode === 'export' && isDone) store.objects.set(uid, content ?? { isFilled: false, writers: 0 });
  };

  const fill = (claim: PersistentVolumeClaim, source: string | undefined) => {
    const isFilled = source === undefined || contentOf(record, source)?.isFilled === true;
    contents.set(claim.metadata.uid!, { writers: 1, ...contents.get(claim.metadata.uid!), isFilled });
  };

  const end = (pod: Pod, how: TransferReport | 'killed') => {
    const isDone = how !== 'killed' && how.outcome === 'succeeded';
    const isSuccess = how !== 'killed' && (how.outcome === 'succeeded' || !how.retryable);
    const target = targetOf(record, pod);
    if (how !== 'killed') endUpload(pod, isDone);
    if (isDone && target !== undefined) fill(target, volumeOf(pod, 'source'));
    kube.edit(pods, pod.metadata, (edited) => {
      const exitCode = how === 'killed' ? 137 : isSuccess ? 0 : 1;
      const message = how === 'killed' ? {} : { message: JSON.stringify(how) };
      const terminated = { exitCode, finishedAt: iso(now()), ...message };
      edited.status = {
        phase: isSuccess ? 'Succeeded' : 'Failed',
        containerStatuses: [{ name: 'transfer', state: { terminated } }],
      };
    });
  };

  /** A check of a user's: it starts once it has its clone, and passes. */
  const check = (pod: Pod) => {
    const clone = contentOf(record, volumeOf(pod, 'disk'));
    if (clone?.isFilled !== true) return;
    const endsAt = creationOf(pod) + checkMs;
    if (now() < endsAt) return later(endsAt);
    kube.edit(pods, pod.metadata, (edited) => {
      const terminated = { exitCode: 0, startedAt: iso(creationOf(pod)), finishedAt: iso(now()) };
      edited.status = { phase: 'Succeeded', containerStatuses: [{ name: 'check', state: { terminated } }] };
    });
  };

  return (pod) => {
    if (isOver(pod)) return;
    if (pod.metadata.name.startsWith('check-')) return check(pod);
    const worker = workers.get(pod.metadata.uid!);
    if (worker === undefined) return start(pod);
    const { startedAt, script } = worker;
    const elapsed = now() - startedAt;
    reportProgress(pod, worker, elapsed);
    if (script.end === 'never') return;
    if (elapsed < script.runMs) return later(startedAt + script.runMs);
    end(pod, script.end);
  };
};
