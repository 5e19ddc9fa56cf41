// A disk that was fetched will be written to by its machine. Before it is handed over, something is kept of it for whoever comes to want the same
// bytes (backends/singleflight): a snapshot where the class makes any and binds at once; else a copy, which takes as much room again, and is made only where
// somebody waits for it. One for a content and class, owned by all who have it from there, and gone with the last of them.
import { leases } from '#shared/api/foreign/coordination.ts';
import { type Pod, type StorageClass, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots, type VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { create } from '#shared/backends/actions.ts';
import type { PlanContext } from '#shared/backends/backend.ts';
import { contentName } from '#shared/backends/singleflight/content.ts';
import { isAwaited } from '#shared/backends/singleflight/singleflight.ts';
import { holderOf } from '#shared/backends/singleflight/hold.ts';
import { readOwn, readSnapshotClass } from '#shared/backends/reading.ts';
import { storageWaitingState } from '#shared/backends/state.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { buildSnapshot, sayContent } from '#shared/populate/snapshot.ts';
import type { Population } from '#shared/populate/volume.ts';
import { contentOfVolume, isGolden } from '#shared/resources/volume/content.ts';
import { type Keeping, type KeptCopy, type Source, planCopy, readCopy } from '#shared/resources/volume/kept-copy.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

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
  const built = sayContent(buildSnapshot(volume.ref, name, claim, snapshotClass), name, population);
  const owned = { ...built, metadata: { ...built.metadata, ownerReferences: [holderOf(volume.ref)] } };
  const actions = snapshot === undefined ? [create(volumeSnapshots, owned)] : [];
  return { is: 'under way', plan: { actions, state } };
};
