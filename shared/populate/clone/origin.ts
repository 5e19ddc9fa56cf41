// Looks up the source of a clone: a golden image, a claim or a snapshot. Only reads; decides nothing about the volume itself.
import type { AskMayUse } from '#shared/access/permissions.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import {
  type AccessMode,
  type PersistentVolumeClaim,
  type VolumeMode,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { labels } from '#shared/api/names.ts';
import { type ObjectKey, ownerOf } from '#shared/api/object.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { findWriter } from '#shared/populate/clone/writer.ts';
import { readClass, readSnapshotClass } from '#shared/populate/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { CloneSource } from '#shared/populate/clone/strategy.ts';
import {
  type Population,
  holdsFiles,
  populationOf,
  provisionerOf,
  requestedBytes,
  volumeModeOf,
} from '#shared/populate/population.ts';

/** A source that can be cloned now. */
export interface ReadyOrigin {
  readonly is: 'ready';
  readonly namespace: string;
  readonly clone: CloneSource;
  /** Set if the claim exists. */
  readonly claim?: PersistentVolumeClaim | undefined;
  /** Name of a snapshot that is ready, in the source's namespace. */
  readonly snapshot?: string | undefined;
  /** The snapshot, if it is all that is left of the source. */
  readonly restored?: VolumeSnapshot | undefined;
  readonly population?: Population | undefined;
  readonly className?: string | undefined;
  readonly accessModes?: readonly AccessMode[] | undefined;
}

export type Origin =
  | ReadyOrigin
  /** Missing or not ready; the change that makes it ready reconciles the volume. */
  | { readonly is: 'waiting'; readonly reason: string; readonly message: string };

export const waitFor = (reason: string, message: string): Origin => ({ is: 'waiting', reason, message });

interface Asked {
  /** For messages. */
  readonly what: string;
  readonly mayUse: AskMayUse;
}

/** Reveals neither the content of the source nor whether it exists. */
const notAllowed = (what: string): Origin =>
  waitFor(
    'NotAuthorized',
    `the author of this object may not clone what ${what} is now: ask for the right to create datavolumes/source of cdi.kubevirt.io in that namespace, then create it again`,
  );

/** A claim, with a ready snapshot of it if there is one. */
export const readClaimOrigin = async (
  kube: KubeClient,
  key: ObjectKey,
  { what, snapshot, mayUse }: Asked & { readonly snapshot?: string | undefined },
): Promise<Origin> => {
  if (!(await mayUse({ use: 'clone-claim', namespace: key.namespace ?? '', name: key.name }))) return notAllowed(what);
  const claim = await kube.get(persistentVolumeClaims, key);
  if (claim === undefined) return waitFor('SourceNotFound', `${what} does not exist`);
  const obstacle = obstacleOf(claim, what);
  if (obstacle !== undefined) return obstacle;
  const driver = await driverOf(kube, claim);
  const population = populationOf(claim);
  const bytes = bytesOf(claim);
  const isOfFiles = holdsFiles(population) || claim.metadata.annotations?.[cdiAnnotations.contentType] === 'archive';
  return {
    is: 'ready',
    namespace: key.namespace ?? '',
    clone: {
      what,
      driver,
      volumeMode: volumeModeOf(claim),
      bytes,
      diskBytes: diskBytesOf(claim, population, bytes),
      holdsFiles: isOfFiles,
      mayHaveGrown: !isOfFiles && volumeModeOf(claim) === 'Filesystem' && isGuests(claim),
      hasSnapshot: snapshot !== undefined,
      snapshotClass:
        snapshot === undefined ? await readSnapshotClass(kube, driver, claim.spec.storageClassName) : undefined,
      hasClaim: true,
      inUseBy: (await findWriter(kube, key))?.metadata.name,
    },
    claim,
    snapshot,
    population,
    className: claim.spec.storageClassName,
    accessModes: claim.spec.accessModes,
  };
};

/** Why a claim cannot be cloned now. */
const obstacleOf = (claim: PersistentVolumeClaim, what: string): Origin | undefined => {
  if (claim.metadata.deletionTimestamp !== undefined) return waitFor('SourceDeleted', `${what} is being deleted`);
  if (claim.status?.phase !== 'Bound') return waitFor('SourceNotReady', `${what} is not bound yet`);
  return isBeingFilled(claim) ? waitFor('SourceNotReady', `${what} is still being filled`) : undefined;
};

/** Every claim that is neither golden nor kept for cloning is or was the disk of a machine that writes to it. */
const isGuests = ({ metadata: { labels: found = {} } }: PersistentVolumeClaim): boolean =>
  (found[labels.role] ?? 'disk') === 'disk' && found[cdiLabels.cron] === undefined;

/**
 * The largest disk it may hold. A guest can use the whole block device, whatever it was first filled with, and a disk file may have grown to
 * the size of the volume; nothing writes beyond the disk of a golden volume.
 */
export const diskBytesOf = (claim: PersistentVolumeClaim, population: Population | undefined, bytes: number): number =>
  isGuests(claim) ? bytes : (population?.inspection.virtualSize ?? bytes);

const bytesOf = (claim: PersistentVolumeClaim): number =>
  parseQuantity(claim.status?.capacity?.['storage']) ?? requestedBytes(claim);

/** Claims of Bullion and of CDI are marked until their bytes are complete. */
const isBeingFilled = (claim: PersistentVolumeClaim): boolean => {
  const { annotations = {} } = claim.metadata;
  const isOurs = ownerOf(claim) !== undefined;
  const phase = annotations['cdi.kubevirt.io/storage.pod.phase'];
  return isOurs ? populationOf(claim) === undefined : phase !== undefined && phase !== 'Succeeded';
};

const driverOf = async (kube: KubeClient, claim: PersistentVolumeClaim): Promise<string | undefined> =>
  provisionerOf(claim) ?? (await readClass(kube, claim.spec.storageClassName))?.provisioner;

export const readSnapshotOrigin = async (
  kube: KubeClient,
  key: ObjectKey,
  { what, mayUse }: Asked,
): Promise<Origin> => {
  if (!(await mayUse({ use: 'clone-snapshot', namespace: key.namespace ?? '', name: key.name })))
    return notAllowed(what);
  const snapshot = await kube.get(volumeSnapshots, key);
  if (snapshot === undefined) return waitFor('SourceNotFound', `${what} does not exist`);
  if (snapshot.metadata.deletionTimestamp !== undefined) return waitFor('SourceDeleted', `${what} is being deleted`);
  if (snapshot.status?.readyToUse !== true) return waitFor('SourceNotReady', `${what} is not ready yet`);
  const population = populationOf(snapshot);
  return {
    is: 'ready',
    namespace: key.namespace ?? '',
    clone: {
      what,
      ...(await contentOf(kube, snapshot)),
      ...sizesOf(snapshot, population),
      holdsFiles: holdsFiles(population),
      hasSnapshot: true,
      hasClaim: false,
    },
    snapshot: key.name,
    restored: snapshot,
    population,
  };
};

/** The restore size of the driver unless it is missing or 0, else the advised restore size, else the known size of the content. */
const sizesOf = (
  { metadata, status }: VolumeSnapshot,
  population: Population | undefined,
): Pick<CloneSource, 'bytes' | 'diskBytes'> => {
  const known = population?.inspection.virtualSize;
  const advised = parseQuantity(metadata.annotations?.[cdiAnnotations.advisedRestoreSize]);
  const bytes = parseQuantity(status?.restoreSize) || (advised ?? known ?? 0);
  // Known for golden images only, and nothing writes beyond the disk of a golden image.
  return { bytes, diskBytes: known ?? bytes };
};

const contentOf = async (
  kube: KubeClient,
  { metadata, status }: VolumeSnapshot,
): Promise<{ readonly driver: string | undefined; readonly volumeMode: VolumeMode }> => {
  const name = status?.boundVolumeSnapshotContentName;
  const content = name === undefined ? undefined : await kube.get(volumeSnapshotContents, { name });
  // Older snapshotters do not record the mode; golden snapshots record it in an annotation.
  const noted = metadata.annotations?.[cdiAnnotations.sourceVolumeMode] === 'Block' ? 'Block' : 'Filesystem';
  return { driver: content?.spec.driver, volumeMode: content?.spec.sourceVolumeMode ?? noted };
};
