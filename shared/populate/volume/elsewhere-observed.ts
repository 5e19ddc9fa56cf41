// Reads a volume whose source is in another namespace: the children created there, and the persistent volume that is being handed over.
import {
  type Job,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  jobs,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { childrenOf } from '#shared/api/object.ts';
import { cloneName } from '#shared/populate/clone/plan.ts';
import { readOwn, readWorkers } from '#shared/populate/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { listIfServed } from '#shared/clients/kube/tolerant.ts';
import { transferJobName } from '#shared/populate/job/transfer-job.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import { populationOf } from '#shared/populate/population.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';

/** The copy is made in the namespace of the source, and its persistent volume is handed over. */
export interface ObservedStage {
  readonly namespace: string;
  readonly claim?: PersistentVolumeClaim | undefined;
  readonly job?: Job | undefined;
  readonly pods: readonly Pod[];
  /** Taken of the source, to be restored. */
  readonly sourceSnapshot?: VolumeSnapshot | undefined;
  /** The claim that was created only to be copied from. */
  readonly restored?: PersistentVolumeClaim | undefined;
  /** The volume of the claim; read once that is filled. */
  readonly bound?: PersistentVolume | undefined;
  /** Being handed over: it has our label. */
  readonly volume?: PersistentVolume | undefined;
}

/** Whether its source may be in another namespace: a reference may lead to any. */
export const mayLieElsewhere = ({ source, ref }: Volume): boolean =>
  source?.type === 'object' && (source.mayLeadOn === true || source.namespace !== ref.namespace);

/** Existing children, in whichever namespace; `undefined`: nothing was created yet. */
export const readStage = async (kube: KubeClient, volume: Volume): Promise<ObservedStage | undefined> => {
  const mine = { labelSelector: childrenOf(volume.ref.uid) };
  const [claims, moving] = [await kube.list(persistentVolumeClaims, mine), await kube.list(persistentVolumes, mine)];
  const claim = claims.items.find(({ metadata }) => metadata.name === cloneName(volume));
  const [handed] = moving.items;
  const namespace = claim?.metadata.namespace ?? '';
  if (claim === undefined) return handed === undefined ? undefined : { namespace, pods: [], volume: handed };
  const isFilled = populationOf(claim) !== undefined && handed === undefined;
  const name = claim.spec.volumeName ?? '';
  const bound = isFilled && name !== '' ? await kube.get(persistentVolumes, { name }) : undefined;
  const restored = claims.items.find(({ metadata }) => metadata.name === recordOf(claim)?.from?.name);
  return { ...(await readPlace(kube, volume, namespace)), claim, restored, bound, volume: handed };
};

/** The Job and the snapshot that may exist in a namespace. */
export const readPlace = async (kube: KubeClient, volume: Volume, namespace: string): Promise<ObservedStage> => {
  const there = { ...volume.ref, namespace };
  const { own: job } = await readOwn(kube, jobs, there, transferJobName('import', there));
  const { own: sourceSnapshot } = await readOwn(kube, volumeSnapshots, there, cloneName(volume));
  return { namespace, job, sourceSnapshot, pods: job === undefined ? [] : await readWorkers(kube, there) };
};

/** Children to remove explicitly with a volume, because owner references do not cross namespaces. */
export interface Orphans {
  readonly claims: readonly PersistentVolumeClaim[];
  readonly jobs: readonly Job[];
  readonly snapshots: readonly VolumeSnapshot[];
  readonly volumes: readonly PersistentVolume[];
}

export const readOrphans = async (kube: KubeClient, { ref }: Volume): Promise<Orphans> => {
  const elsewhere = async <T extends KubeObject>(type: ResourceType<T>): Promise<readonly T[]> => {
    const items = await listIfServed(kube, type, { labelSelector: childrenOf(ref.uid) });
    return items.filter(({ metadata }) => metadata.namespace !== ref.namespace);
  };
  return {
    claims: await elsewhere(persistentVolumeClaims),
    jobs: await elsewhere(jobs),
    snapshots: await elsewhere(volumeSnapshots),
    volumes: await elsewhere(persistentVolumes),
  };
};
