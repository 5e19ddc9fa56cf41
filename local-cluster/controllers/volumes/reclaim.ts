// Reclaims volumes whose claim was deleted, and removes orphaned files.
import { type PersistentVolume, persistentVolumeClaims, persistentVolumes } from '#shared/api/foreign/core.ts';
import { volumeSnapshotContents } from '#shared/api/foreign/snapshot.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Controller, type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';
import { dropFinalizers } from '#local-cluster/controllers/finalizers.ts';
import { isOurDriver } from '#local-cluster/controllers/volumes/classes.ts';
import { filesFinalizer } from '#local-cluster/controllers/volumes/claims.ts';
import { driverOf, handleOf } from '#local-cluster/controllers/volumes/facts.ts';
import type { VolumeDirectory } from '#local-cluster/controllers/volumes/directory.ts';

const volumeFinalizers = [filesFinalizer, 'kubernetes.io/pv-protection'];

export const startReclaimController = (
  context: ControllerContext & { readonly directory: VolumeDirectory },
): Controller =>
  startController(
    {
      ...context,
      name: 'reclaim',
      reconcile: async (name) => {
        const volume = await context.kube.get(persistentVolumes, { name });
        if (volume !== undefined && isOurDriver(driverOf(volume))) await reclaim(context, volume);
        return undefined;
      },
    },
    ({ watch }) => {
      watch(persistentVolumes, (volume) => [volume.metadata.name]);
      watch(persistentVolumeClaims, (claim, removed) => {
        const name = claim.spec.volumeName;
        return removed && name !== undefined && name !== '' ? [name] : [];
      });
    },
  );

const isClaimed = async (kube: KubeClient, { spec: { claimRef } }: PersistentVolume): Promise<boolean> => {
  if (claimRef?.uid === undefined) return false;
  const claim = await kube.get(persistentVolumeClaims, claimRef);
  return claim?.metadata.uid === claimRef.uid;
};

const reclaim = async (
  { kube, directory }: { readonly kube: KubeClient; readonly directory: VolumeDirectory },
  volume: PersistentVolume,
): Promise<void> => {
  const { name, uid = '', deletionTimestamp } = volume.metadata;
  const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec;
  if (await isClaimed(kube, volume)) return;
  if (claimRef !== undefined && volume.status?.phase !== 'Released') {
    await kube.mergePatch(persistentVolumes, { name }, { status: { phase: 'Released' } }, { subresource: 'status' });
    return;
  }
  const isLeftOver = claimRef !== undefined && policy !== 'Retain';
  if (!isLeftOver && deletionTimestamp === undefined) return;
  if (policy === 'Retain') await directory.retain(handleOf(volume));
  else await directory.remove({ what: 'volume', handle: handleOf(volume) });
  await dropFinalizers(kube, persistentVolumes, volume, volumeFinalizers);
  await kube.delete(persistentVolumes, { name }, { uid });
};

/**
 * Removes volumes and snapshots without an object, left by a crash between the creation of the files and that of the object. Call it before
 * the controllers start, so that nothing is being created at the same time.
 */
export const sweepFiles = async (kube: KubeClient, directory: VolumeDirectory): Promise<void> => {
  const known = new Set<string>();
  for await (const volume of kube.listAll(persistentVolumes)) known.add(`volume/${handleOf(volume)}`);
  for await (const { metadata } of kube.listAll(persistentVolumeClaims)) known.add(`volume/pvc-${metadata.uid ?? ''}`);
  for await (const { metadata, status } of kube.listAll(volumeSnapshotContents)) {
    known.add(`snapshot/${status?.snapshotHandle ?? metadata.name}`);
    known.add(`snapshot/${metadata.name}`);
  }
  for (const origin of await directory.handles()) {
    if (!known.has(`${origin.what}/${origin.handle}`)) await directory.remove(origin);
  }
};
