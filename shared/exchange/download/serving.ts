// The Job that serves a volume for download: created on request, it ends by itself when there are no more requests.
import { createHash } from 'node:crypto';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import {
  type Job,
  jobs,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  pods,
  type VolumeMode,
} from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations } from '#shared/api/names.ts';
import { apiVersionOf, childrenOf, type ObjectRef, ownerOf, refOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { targetText } from '#shared/exchange/target-name.ts';
import type { ExchangeTarget } from '#shared/exchange/target.ts';
import { findWorker, type Worker } from '#shared/exchange/worker.ts';
import { findWriter } from '#shared/populate/clone/writer.ts';
import { isFinished, readTransfer } from '#shared/populate/job/attempts.ts';
import { startTransfer } from '#shared/populate/job/start-transfer.ts';
import { buildTransferJob, transferJobName } from '#shared/populate/job/transfer-job.ts';
import { volumeModeOf } from '#shared/populate/population.ts';
import { downloadPort } from '#shared/populate/sources/upload.ts';
import { isConflict, isNotFound } from '#shared/runtime/errors.ts';

// The volume of a target to download, and whether it can be read now. Only reads.

export interface DownloadVolume {
  /** Owner of the Job that serves it. */
  readonly owner: ObjectRef & { readonly namespace: string };
  readonly claimName: string;
  readonly volumeMode: VolumeMode;
  /** Identifies its content, if it has no writer any more. */
  readonly identity: string | undefined;
}

const imageKind = /^VirtualMachineImage\./;

/** Golden volumes are not mounted by machines: their content is unchanged. */
const identityOf = (claim: PersistentVolumeClaim): string | undefined => {
  const populated = claim.metadata.annotations?.[annotations.populated];
  const isGolden = imageKind.test(ownerOf(claim)?.groupKind ?? '');
  if (!isGolden || populated === undefined) return undefined;
  return createHash('sha256')
    .update(`${claim.metadata.uid ?? ''}/${populated}`)
    .digest('hex');
};

/** Throws a Problem: 409 if it has no consistent content now. */
export const findVolume = async (kube: KubeClient, target: ExchangeTarget): Promise<DownloadVolume> => {
  const { name, uid, claimName, isUsable, message: why } = target;
  const { namespace } = name;
  if (!isUsable) throw new Problem(409, 'NotReady', `${targetText(name)} cannot be downloaded yet: ${why}`);
  const claim =
    claimName === undefined ? undefined : await kube.get(persistentVolumeClaims, { namespace, name: claimName });
  if (claim === undefined) throw new Problem(409, 'VolumeLost', `the volume of ${targetText(name)} does not exist`);
  if (claim.metadata.annotations?.[cdiAnnotations.contentType] === 'archive')
    throw new Problem(
      409,
      'UnsupportedFormat',
      `${targetText(name)} contains files, not a disk: mount its claim to read them`,
    );
  const identity = identityOf(claim);
  const writer = identity === undefined ? await findWriter(kube, { namespace, name: claim.metadata.name }) : undefined;
  if (writer !== undefined) {
    const message = `${targetText(name)} is in use by pod ${writer.metadata.name}, which may write to it: stop it, or download a copy of a snapshot`;
    throw new Problem(409, 'SourceInUse', message);
  }
  const { type } = harvesterImageKind;
  const owner =
    name.plural === 'virtualmachineimages'
      ? { apiVersion: apiVersionOf(type), kind: type.kind, namespace, name: name.name, uid }
      : { ...refOf(claim), namespace };
  return { owner, claimName: claim.metadata.name, volumeMode: volumeModeOf(claim), identity };
};

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
