// The Job that serves a volume for download: created on request, it ends by itself when there are no more requests.
import { type Job, jobs, pods } from '#shared/api/foreign/core.ts';
import { childrenOf } from '#shared/api/owner.ts';
import { startTransfer } from '#shared/populate/job/start-transfer.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import type { DownloadVolume } from '#shared/exchange/download/volume.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { type Worker, findWorker } from '#shared/exchange/worker.ts';
import { isFinished, readTransfer } from '#shared/populate/job/attempts.ts';
import { downloadPort } from '#shared/populate/sources/upload.ts';
import { buildTransferJob, transferJobName } from '#shared/populate/job/transfer-job.ts';
import { isConflict, isNotFound } from '#shared/runtime/errors.ts';

type Owner = DownloadVolume['owner'];

const keyOf = (owner: Owner) => ({ namespace: owner.namespace, name: transferJobName('serve', owner) });

const unlessGone = async (work: Promise<unknown>, isFine: (error: unknown) => boolean): Promise<void> => {
  await work.catch((error: unknown) => {
    if (!isFine(error)) throw error;
  });
};

const remove = (kube: KubeClient, owner: Owner, job: Job): Promise<void> =>
  unlessGone(kube.delete(jobs, keyOf(owner), { uid: job.metadata.uid ?? '', propagation: 'Foreground' }), isNotFound);

const build = ({ settings }: ExchangeDeps, { owner, claimName, volumeMode, identity }: DownloadVolume): Job =>
  buildTransferJob(
    { mode: 'serve', owner, source: { type: 'claim', claimName, volumeMode }, identity, retries: 0 },
    settings,
  );

/** Creates it if there is none; a finished one is removed first. Throws a Problem (503) if it failed. */
const ensureJob = async (deps: ExchangeDeps, volume: DownloadVolume): Promise<void> => {
  const { kube, now } = deps;
  const { owner } = volume;
  const job = await kube.get(jobs, keyOf(owner));
  if (job === undefined) return unlessGone(startTransfer(kube, build(deps, volume)), isConflict);
  if (job.metadata.deletionTimestamp !== undefined || !isFinished(job)) return;
  const { items } = await kube.list(pods, { namespace: owner.namespace, labelSelector: childrenOf(owner.uid) });
  const run = readTransfer(job, items, now());
  await remove(kube, owner, job);
  if (run.is !== 'failed') return;
  throw new Problem(503, run.fault.reason, `the volume cannot be downloaded: ${run.fault.message}`);
};

/** Throws a Problem: 503 if its pod does not start. */
export const openServing = async (deps: ExchangeDeps, volume: DownloadVolume, signal: AbortSignal): Promise<Worker> => {
  const { namespace, uid } = volume.owner;
  const check = (): Promise<void> => ensureJob(deps, volume);
  return findWorker(deps, {
    namespace,
    uid,
    role: 'serve',
    port: downloadPort,
    waitMs: deps.waitMs,
    signal,
    check,
  });
};

/** Ends all downloads of it. Returns whether there were any. */
export const endServing = async (kube: KubeClient, owner: Owner): Promise<boolean> => {
  const job = await kube.get(jobs, keyOf(owner));
  if (job === undefined) return false;
  await remove(kube, owner, job);
  return true;
};
