// A fetched disk will be written to by its machine. Before it is handed over, a copy is retained for volumes that request the same bytes later
// (populate/singleflight): a snapshot if the class supports it and binds at once; else a full copy, which needs the same space again and is
// made only if a volume waits for it. There is one per content and class, owned by all volumes cloned from it, and deleted with the last of
// them.
import { leases } from '#shared/api/foreign/kubernetes.ts';
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
import { contentName } from '#shared/populate/singleflight/read.ts';
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
  /** Label of the content. */
  readonly name: string;
  readonly snapshotClass: string;
  readonly snapshot?: VolumeSnapshot | undefined;
}

const over: Keeping = { is: 'over', actions: [] };

/** Whether it holds bytes that others may request, and its machine is about to write to it. */
export const mayBeKept = (volume: Volume): boolean => contentOfVolume(volume) !== undefined && !isGolden(volume);

/** `undefined` if no copy is possible or needed: a golden volume is kept itself. */
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

/** In a WaitForFirstConsumer class a snapshot is useless: no golden volume can be restored from it, because no pod uses a golden volume. */
const snapshotClassOf = async (
  kube: KubeClient,
  { metadata, provisioner, volumeBindingMode }: StorageClass,
): Promise<string | undefined> =>
  volumeBindingMode === 'WaitForFirstConsumer' ? undefined : readSnapshotClass(kube, provisioner, metadata.name);

interface Fetched extends Source {
  readonly pods: readonly Pod[];
}

/** It is for others, so its failure does not fail this volume. */
export const planRetainedCopy = (
  volume: Volume,
  retainedCopy: RetainedCopy | undefined,
  fetched: Fetched,
  context: PlanContext,
): Keeping => {
  if (retainedCopy === undefined) return over;
  return retainedCopy.is === 'copy'
    ? planCopy(volume, retainedCopy, fetched, context)
    : planSnapshot(volume, retainedCopy, fetched, context);
};

const planSnapshot = (
  volume: Volume,
  { name, snapshotClass, snapshot }: KeptSnapshot,
  fetched: Source,
  context: PlanContext,
): Keeping => {
  const { name: claim } = fetched.claim.metadata;
  const isOurs = snapshot === undefined || snapshot.spec.source.persistentVolumeClaimName === claim;
  if (!isOurs || snapshot?.status?.readyToUse === true || snapshot?.status?.error !== undefined) return over;
  const message = 'taking a snapshot for others that want the same bytes, before the volume is written to';
  const wait = {
    phase: 'Verifying',
    reason: 'KeepingContent',
    message,
    child: snapshot,
    isComplaining: false,
  } as const;
  const state = storageWaitingState(volume, volume.state, wait, context);
  if (state.phase === 'Failed') return over;
  const built = describeContent(buildSnapshot(volume.ref, name, claim, snapshotClass), name, fetched.population);
  const owned = { ...built, metadata: { ...built.metadata, ownerReferences: [holderOf(volume.ref)] } };
  const actions = snapshot === undefined ? [create(volumeSnapshots, owned)] : [];
  return { is: 'under way', plan: { actions, state } };
};

// A full copy of a fetched disk for volumes that wait for the same bytes, if no snapshot is possible: a Job makes it before the disk is used.

/** The remaining work for others before a disk is handed over: a step, or actions that accompany the handover. */
type Keeping =
  | { readonly is: 'under way'; readonly plan: Plan }
  | { readonly is: 'over'; readonly actions: readonly Action[] };

interface KeptCopy {
  readonly is: 'copy';
  /** Label of the content. */
  readonly name: string;
  /** Whether a volume waits for the bytes. */
  readonly isAwaited: boolean;
  readonly claim: PersistentVolumeClaim | undefined;
  readonly job: Job | undefined;
}

/** The fetched disk. */
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

const ended = (actions: readonly Action[]): Keeping => ({ is: 'over', actions });

/** Removes a copy that failed. */
const leave = ({ claim, job }: KeptCopy): readonly Action[] => [
  ...removeJob(job),
  ...remove(persistentVolumeClaims, claim),
];

const planCopy = (volume: Volume, kept: KeptCopy, fetched: CopiedContent, context: PlanContext): Keeping => {
  const { claim, job, isAwaited } = kept;
  if (claim === undefined && !isAwaited) return ended(leave(kept));
  if (claim?.metadata.deletionTimestamp !== undefined) return ended(leave(kept));
  const run = job === undefined ? undefined : readTransfer(job, fetched.pods, context.now);
  if (run?.is === 'failed') return ended(leave(kept));
  return run?.is === 'succeeded' && claim !== undefined
    ? ended([patch(persistentVolumeClaims, claim, populatedPatch(fetched.population, {}))])
    : planMaking(volume, kept, fetched, context);
};

const planMaking = (volume: Volume, kept: KeptCopy, fetched: CopiedContent, context: PlanContext): Keeping => {
  const { name, claim, job } = kept;
  const wait = {
    phase: 'Verifying',
    reason: 'KeepingContent',
    message: 'copying the disk for others that wait for the same bytes, before it is written to',
    child: claim,
    isComplaining: false,
  } as const;
  const state = storageWaitingState(volume, volume.state, wait, context);
  if (state.phase === 'Failed') return ended(leave(kept));
  const wanted = claim ?? buildCopy(volume, name, fetched.claim);
  const actions = [
    ...(claim === undefined ? [create(persistentVolumeClaims, wanted)] : []),
    ...(job === undefined ? [create(jobs, buildJob(volume, wanted, fetched.claim, context))] : []),
  ];
  return { is: 'under way', plan: { actions, state } };
};

/** Like the disk, but without an owner of its own. */
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

/** Its progress is not reported: the disk itself is complete. */
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
