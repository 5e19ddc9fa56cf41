// What is read before the next step of a volume is decided. A Job is read before the claim it fills, since it is made after it.
import {
  type Job,
  type KubeEvent,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
  jobs,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { isRetryDue } from '#shared/backends/image.ts';
import { readClass, readNewestWarnings, readOwn, readWorkers } from '#shared/backends/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { transferJobName } from '#shared/populate/transfer-job.ts';
import { populationOf } from '#shared/populate/volume.ts';
import { type Origin, readClaimOrigin, readSnapshotOrigin, waitFor } from '#shared/resources/volume/origin.ts';
import type { Volume, VolumeSource } from '#shared/resources/volume/volume.ts';

export interface VolumeSeen {
  readonly claim?: PersistentVolumeClaim | undefined;
  /** A claim of our name that belongs to somebody else. */
  readonly foreign?: PersistentVolumeClaim | undefined;
  readonly job?: Job | undefined;
  /** Looks at the source of a volume whose size nobody gave. */
  readonly inspectJob?: Job | undefined;
  readonly pods: readonly Pod[];
  /** Taken of the source, to be restored. */
  readonly sourceSnapshot?: VolumeSnapshot | undefined;
  /** Class of the claim, or the one it is to be made with. */
  readonly storageClass?: StorageClass | undefined;
  /** Read only where the claim is to be made; `undefined` for sources of bytes. */
  readonly origin?: Origin | undefined;
  readonly warnings?: readonly KubeEvent[] | undefined;
}

/** How a kind of golden image is found ready, by `<kind>.<group>`. */
export type OriginReaders = Readonly<Record<string, (kube: KubeClient, key: Key) => Promise<Origin>>>;
type Key = { readonly namespace: string; readonly name: string };

const snapshotGroupKind = 'VolumeSnapshot.snapshot.storage.k8s.io';

/** Of the snapshot taken of a source that has none. */
export const sourceSnapshotName = ({ ref }: Volume): string => `clone-${ref.uid}`;

export const checkVolume = async (kube: KubeClient, volume: Volume, readers: OriginReaders): Promise<VolumeSeen> => {
  if (volume.state.phase === 'Failed' && !isRetryDue(volume)) return { pods: [] };
  const { own: job } = await readOwn(kube, jobs, volume.ref, transferJobName('import', volume.ref));
  const { own: claim, foreign } = await readOwn(kube, persistentVolumeClaims, volume.ref, volume.claim.name);
  const own = { job, claim, foreign: foreign[0], sourceSnapshot: await readSourceSnapshot(kube, volume) };
  if (claim === undefined) return { pods: [], ...own, ...(await readForClaim(kube, volume, readers)) };
  if (populationOf(claim) !== undefined) return { pods: [], ...own };
  const workers = job === undefined ? [] : await readWorkers(kube, volume.ref);
  const storageClass = await readClass(kube, claim.spec.storageClassName);
  return { ...own, pods: workers, storageClass, warnings: await readWarnings(kube, volume, [claim, job, ...workers]) };
};

const readSourceSnapshot = async (kube: KubeClient, volume: Volume): Promise<VolumeSnapshot | undefined> => {
  const { source } = volume;
  // Whatever stands for a claim in the end may need one; a snapshot does not.
  if (source?.type !== 'object' || source.groupKind === snapshotGroupKind) return undefined;
  return (await readOwn(kube, volumeSnapshots, volume.ref, sourceSnapshotName(volume))).own;
};

const readForClaim = async (
  kube: KubeClient,
  volume: Volume,
  readers: OriginReaders,
): Promise<Partial<Pick<VolumeSeen, 'origin' | 'storageClass' | 'inspectJob' | 'pods'>>> => {
  const { source, claim } = volume;
  const origin = await readOrigin(kube, source, readers);
  if (origin !== undefined && origin.is !== 'ready') return { origin };
  const storageClass = await readClass(kube, claim.className ?? origin?.className);
  return needsInspection(volume)
    ? { origin, storageClass, ...(await readInspection(kube, volume)) }
    : { origin, storageClass };
};

/** A source of bytes whose disk nobody told the size of. */
export const needsInspection = ({ source, claim }: Volume): boolean =>
  source?.type === 'transfer' && claim.bytes === undefined && claim.diskBytes === undefined;

const readInspection = async (
  kube: KubeClient,
  { ref }: Volume,
): Promise<Partial<Pick<VolumeSeen, 'inspectJob' | 'pods'>>> => {
  const { own: inspectJob } = await readOwn(kube, jobs, ref, transferJobName('inspect', ref));
  return inspectJob === undefined ? {} : { inspectJob, pods: await readWorkers(kube, ref) };
};

const readOrigin = async (
  kube: KubeClient,
  source: VolumeSource | undefined,
  readers: OriginReaders,
): Promise<Origin | undefined> => {
  if (source?.type !== 'object') return undefined;
  const { groupKind, namespace, name } = source;
  const key = { namespace, name };
  switch (groupKind) {
    case 'PersistentVolumeClaim':
      return readClaimOrigin(kube, key, { what: `PersistentVolumeClaim ${namespace}/${name}` });
    case snapshotGroupKind:
      return readSnapshotOrigin(kube, key, `VolumeSnapshot ${namespace}/${name}`);
    default:
      return readers[groupKind]?.(kube, key) ?? waitFor('SourceUnknown', `nothing is known of ${groupKind} ${name}`);
  }
};

/** Only while something is waited for; a child just made has nothing to complain about. */
const readWarnings = async (
  kube: KubeClient,
  { state }: Volume,
  children: readonly (PersistentVolumeClaim | Job | Pod | undefined)[],
): Promise<readonly KubeEvent[]> =>
  state.deadline === undefined
    ? []
    : readNewestWarnings(
        kube,
        children.filter((child) => child !== undefined),
      );
