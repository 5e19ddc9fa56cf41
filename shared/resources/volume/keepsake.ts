// A disk that was fetched will be written to by its machine. Before it is handed over, a snapshot of it is kept for whoever comes to want the same bytes
// (backends/flight): one for a content and class, owned by all who have it from there, and gone with the last of them.
import { volumeSnapshots, type VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import { type Action, create, patch } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { contentName } from '#shared/backends/flight/content.ts';
import type { ReadyOrigin } from '#shared/backends/origin.ts';
import { readSnapshotClasses } from '#shared/backends/reading.ts';
import { storageWaitingState } from '#shared/backends/state.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { buildSnapshot, chooseSnapshotClass, sayContent } from '#shared/populate/snapshot.ts';
import type { Population } from '#shared/populate/volume.ts';
import { contentOfVolume, isGolden } from '#shared/resources/volume/content.ts';
import { isHeldBack } from '#shared/resources/volume/state.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

export interface Keepsake {
  /** That of the content. */
  readonly name: string;
  readonly snapshotClass: string;
  readonly snapshot?: VolumeSnapshot | undefined;
}

/** `undefined` where there can be none, or need be none: a golden volume is kept itself. */
export const readKeepsake = async (
  kube: KubeClient,
  volume: Volume,
  storageClass: StorageClass | undefined,
): Promise<Keepsake | undefined> => {
  const content = contentOfVolume(volume);
  if (content === undefined || storageClass === undefined || isGolden(volume) || isHeldBack(volume, storageClass))
    return undefined;
  const choice = chooseSnapshotClass(await readSnapshotClasses(kube), storageClass.provisioner, undefined);
  if (choice.is !== 'found') return undefined;
  const name = contentName(content, storageClass.metadata.name);
  const snapshot = await kube.get(volumeSnapshots, { namespace: volume.ref.namespace, name });
  return { name, snapshotClass: choice.name, snapshot };
};

const ownerOf = ({ ref: { apiVersion, kind, name, uid } }: Volume) => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: false,
  blockOwnerDeletion: false,
});

/** The step that keeps what was fetched, while that is not done; it is for others, and nothing fails for it. */
export const planKeepsake = (
  volume: Volume,
  { name, snapshotClass, snapshot }: Keepsake,
  population: Population,
  context: PlanContext,
): Plan | undefined => {
  const { name: claim } = volume.claim;
  const isOurs = snapshot === undefined || snapshot.spec.source.persistentVolumeClaimName === claim;
  if (!isOurs || snapshot?.status?.readyToUse === true || snapshot?.status?.error !== undefined) return undefined;
  const message = 'taking a snapshot for others that want the same bytes, before anybody writes to the volume';
  const wait = {
    phase: 'Verifying',
    reason: 'KeepingContent',
    message,
    child: snapshot,
    isComplaining: false,
  } as const;
  const state = storageWaitingState(volume, volume.state, wait, context);
  if (state.phase === 'Failed') return undefined;
  const built = sayContent(buildSnapshot(volume.ref, name, claim, snapshotClass), name, population);
  const owned = { ...built, metadata: { ...built.metadata, ownerReferences: [ownerOf(volume)] } };
  return { actions: snapshot === undefined ? [create(volumeSnapshots, owned)] : [], state };
};

/** Whoever has the bytes from a snapshot that was kept for them keeps it, too. */
export const holdKeepsake = (volume: Volume, name: string, { restored: snapshot }: ReadyOrigin): readonly Action[] => {
  if (snapshot?.metadata.name !== name) return [];
  const { ownerReferences = [] } = snapshot.metadata;
  if (ownerReferences.some(({ uid }) => uid === volume.ref.uid)) return [];
  return [patch(volumeSnapshots, snapshot, { metadata: { ownerReferences: [...ownerReferences, ownerOf(volume)] } })];
};
