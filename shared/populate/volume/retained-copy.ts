// A disk that was fetched will be written to by its machine. Before it is handed over, something is kept of it for whoever comes to want the same
// bytes (populate/singleflight): a snapshot where the class makes any and binds at once; else a copy, which takes as much room again, and is made only where
// somebody waits for it. One for a content and class, owned by all who have it from there, and gone with the last of them.
import { leases } from '#shared/api/foreign/coordination.ts';
import {
  type Pod,
  type StorageClass,
  persistentVolumeClaims,
  type Job,
  type PersistentVolumeClaim,
  jobs,
} from '#shared/api/foreign/core.ts';
import { volumeSnapshots, type VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import {
  create,
  type Action,
  patch,
  remove,
  removeJob,
  type PlanContext,
  type Plan,
} from '#shared/populate/actions.ts';
import { contentName } from '#shared/populate/singleflight/content.ts';
import { isAwaited } from '#shared/populate/singleflight/singleflight.ts';
import { holderOf } from '#shared/populate/singleflight/singleflight.ts';
import { readOwn, readSnapshotClass } from '#shared/populate/reading.ts';
import { storageWaitingState } from '#shared/populate/state.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { buildSnapshot, describeContent } from '#shared/populate/storage/snapshot.ts';
import {
  type Population,
  buildVolume,
  contentLabel,
  populatedPatch,
  requestedBytes,
  volumeModeOf,
} from '#shared/populate/population.ts';
import { contentOfVolume, isGolden, type Volume } from '#shared/populate/volume/volume.ts';
import { readTransfer } from '#shared/populate/job/attempts.ts';
import { diskBytesIn } from '#shared/populate/population.ts';
import { buildTransferJob, transferJobName } from '#shared/populate/job/transfer-job.ts';

export type RetainedCopy = KeptSnapshot | KeptCopy;

interface KeptSnapshot {
  readonly is: 'snapshot';
  /** That of the content. */
  readonly name: string;
  readonly snapshotClass: string;
  readonly snapshot?: VolumeSnapshot | undefined;
}

const over: Keeping = { is: 'over', actions: [] };

/** Whether there are bytes in it that others may want, and that its machine is about to write to. */
export const mayBeKept = (volume: Volume): boolean => contentOfVolume(volume) !== undefined && !isGolden(volume);

/** `undefined` where there can be none, or need be none: a golden volume is kept itself. */
export const readRetainedCopy = async (
  kube: KubeClient,
  volume: Volume,
  storageClass: StorageClass | undefined,
): Promise<RetainedCopy | undefined> => {
  const content = contentOfVolume(volume);
  if (content === undefined || storageClass === undefined || isGolden(volume)) return undefined;
  const { namespace } = volume.ref;
  const name = contentName(content, storageClass.metadata.name);
  const snapshotClass = await snapshotClassOf(kube, storageClass);
  if (snapshotClass !== undefined)
    return { is: 'snapshot', name, snapshotClass, snapshot: await kube.get(volumeSnapshots, { namespace, name }) };
  const lease = await kube.get(leases, { namespace, name });
  const { own, foreign } = await readOwn(kube, persistentVolumeClaims, volume.ref, name);
  const isKept = foreign.length > 0;
  return isKept ? undefined : readCopy(kube, volume, { name, claim: own, isAwaited: isAwaited(lease, volume.ref) });
};

/** Where volumes wait for a pod, a snapshot alone is of no use: nothing can be restored from it for a golden volume, which no pod uses. */
const snapshotClassOf = async (
  kube: KubeClient,
  { metadata, provisioner, volumeBindingMode }: StorageClass,
): Promise<string | undefined> =>
  volumeBindingMode === 'WaitForFirstConsumer' ? undefined : readSnapshotClass(kube, provisioner, metadata.name);

interface Fetched extends Source {
  readonly pods: readonly Pod[];
}

/** It is for others, and nothing fails for it. */
export const planRetainedCopy = (
  volume: Volume,
  retainedCopy: RetainedCopy | undefined,
  fetched: Fetched,
  context: PlanContext,
): Keeping => {
  if (retainedCopy === undefined) return over;
  return retainedCopy.is === 'copy'
    ? planCopy(volume, retainedCopy, fetched, context)
    : planSnapshot(volume, retainedCopy, fetched.population, context);
};

const planSnapshot = (
  volume: Volume,
  { name, snapshotClass, snapshot }: KeptSnapshot,
  population: Population,
  context: PlanContext,
): Keeping => {
  const { name: claim } = volume.claim;
  const isOurs = snapshot === undefined || snapshot.spec.source.persistentVolumeClaimName === claim;
  if (!isOurs || snapshot?.status?.readyToUse === true || snapshot?.status?.error !== undefined) return over;
  const message = 'taking a snapshot for others that want the same bytes, before anybody writes to the volume';
  const wait = {
    phase: 'Verifying',
    reason: 'KeepingContent',
    message,
    child: snapshot,
    isComplaining: false,
  } as const;
  const state = storageWaitingState(volume, volume.state, wait, context);
  if (state.phase === 'Failed') return over;
  const built = describeContent(buildSnapshot(volume.ref, name, claim, snapshotClass), name, population);
  const owned = { ...built, metadata: { ...built.metadata, ownerReferences: [holderOf(volume.ref)] } };
  const actions = snapshot === undefined ? [create(volumeSnapshots, owned)] : [];
  return { is: 'under way', plan: { actions, state } };
};

// A copy of a fetched disk that is kept for those who wait for the same bytes, where no snapshot can be: a Job of ours makes it while nobody uses the
// disk yet.

/** What is left to do for others before a disk is handed over: a step, or what goes with handing over. */
type Keeping =
  | { readonly is: 'under way'; readonly plan: Plan }
  | { readonly is: 'over'; readonly actions: readonly Action[] };

interface KeptCopy {
  readonly is: 'copy';
  /** That of the content. */
  readonly name: string;
  /** Whether somebody waits for what is fetched. */
  readonly isAwaited: boolean;
  readonly claim: PersistentVolumeClaim | undefined;
  readonly job: Job | undefined;
}

/** What was fetched. */
interface Source {
  readonly claim: PersistentVolumeClaim;
  readonly population: Population;
}

const readCopy = async (
  kube: KubeClient,
  { ref }: Volume,
  found: Pick<KeptCopy, 'name' | 'claim' | 'isAwaited'>,
): Promise<KeptCopy> => ({
  is: 'copy',
  ...found,
  job: (await readOwn(kube, jobs, ref, transferJobName('keep', ref))).own,
});

type CopiedContent = Source & { readonly pods: readonly Pod[] };

const give = (actions: readonly Action[]): Keeping => ({ is: 'over', actions });

/** What is left of one that comes to nothing. */
const leave = ({ claim, job }: KeptCopy): readonly Action[] => [
  ...removeJob(job),
  ...remove(persistentVolumeClaims, claim),
];

const planCopy = (volume: Volume, kept: KeptCopy, fetched: CopiedContent, context: PlanContext): Keeping => {
  const { claim, job, isAwaited } = kept;
  if (claim === undefined && !isAwaited) return give(leave(kept));
  if (claim?.metadata.deletionTimestamp !== undefined) return give(leave(kept));
  const run = job === undefined ? undefined : readTransfer(job, fetched.pods, context.now);
  if (run?.is === 'failed') return give(leave(kept));
  return run?.is === 'succeeded' && claim !== undefined
    ? give([patch(persistentVolumeClaims, claim, populatedPatch(fetched.population, {}))])
    : planMaking(volume, kept, fetched, context);
};

const planMaking = (volume: Volume, kept: KeptCopy, fetched: CopiedContent, context: PlanContext): Keeping => {
  const { name, claim, job } = kept;
  const wait = {
    phase: 'Verifying',
    reason: 'KeepingContent',
    message: 'copying the disk for others that wait for the same bytes, before anybody writes to it',
    child: claim,
    isComplaining: false,
  } as const;
  const state = storageWaitingState(volume, volume.state, wait, context);
  if (state.phase === 'Failed') return give(leave(kept));
  const wanted = claim ?? buildCopy(volume, name, fetched.claim);
  const actions = [
    ...(claim === undefined ? [create(persistentVolumeClaims, wanted)] : []),
    ...(job === undefined ? [create(jobs, buildJob(volume, wanted, fetched.claim, context))] : []),
  ];
  return { is: 'under way', plan: { actions, state } };
};

/** As the disk is, but nobody's. */
const buildCopy = (
  { ref }: Volume,
  name: string,
  { spec, ...source }: PersistentVolumeClaim,
): PersistentVolumeClaim => {
  const built = buildVolume({
    owner: ref,
    role: 'kept',
    name,
    storageClassName: spec.storageClassName,
    volumeMode: volumeModeOf({ spec, ...source }),
    accessModes: spec.accessModes ?? [],
    bytes: requestedBytes({ spec, ...source }),
    annotations: {},
  });
  const { labels } = built.metadata;
  return {
    ...built,
    metadata: { ...built.metadata, labels: { ...labels, ...contentLabel(name) }, ownerReferences: [holderOf(ref)] },
  };
};

/** Its progress is nobody's: the disk is there. */
const buildJob = (
  { ref, retries, pod }: Volume,
  target: PersistentVolumeClaim,
  source: PersistentVolumeClaim,
  { settings }: PlanContext,
): Job => {
  const volumeMode = volumeModeOf(target);
  const capacityBytes = diskBytesIn(requestedBytes(target), volumeMode, settings.filesystemOverhead);
  return buildTransferJob(
    {
      mode: 'import',
      role: 'keep',
      owner: ref,
      source: { type: 'claim', claimName: source.metadata.name, volumeMode: volumeModeOf(source) },
      retries,
      pod,
      target: { claimName: target.metadata.name, volumeMode, capacityBytes },
    },
    { ...settings, eventSink: undefined },
  );
};
