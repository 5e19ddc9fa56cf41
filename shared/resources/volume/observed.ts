// What is read before the next step of a volume is decided. A Job is read before the claim it fills, since it is made after it.
import { type MayUse, mayUseOf } from '#shared/access/grant.ts';
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import {
  type Job,
  type KubeEvent,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
  jobs,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { cloneName } from '#shared/backends/cloning.ts';
import type { ObservedSingleflight } from '#shared/backends/singleflight/singleflight.ts';
import { readSingleflight } from '#shared/backends/singleflight/read.ts';
import { isRetryDue } from '#shared/backends/image.ts';
import {
  readClass,
  readMarked,
  readNewestWarnings,
  readOwn,
  readProfile,
  readWorkers,
} from '#shared/backends/reading.ts';
import { readRestored, withRestoreClass } from '#shared/backends/restoring.ts';
import { readSpool } from '#shared/backends/spooling.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { readTransfer } from '#shared/populate/attempts.ts';
import { transferJobName } from '#shared/populate/transfer-job.ts';
import { populationOf } from '#shared/populate/volume.ts';
import {
  type ObservedStage,
  type Orphans,
  mayLieElsewhere,
  readPlace,
  readStage,
  readOrphans,
} from '#shared/resources/volume/elsewhere-observed.ts';
import {
  type Origin,
  type ReadyOrigin,
  readClaimOrigin,
  readSnapshotOrigin,
  waitFor,
} from '#shared/backends/origin.ts';
import { recordOf } from '#shared/populate/clone.ts';
import { findPromised, needsBinder } from '#shared/resources/volume/binding.ts';
import { type RetainedCopy, mayBeKept, readRetainedCopy } from '#shared/resources/volume/retained-copy.ts';
import { contentOfVolume, type Volume, bytesOf } from '#shared/resources/volume/volume.ts';
import { isHeldBack } from '#shared/resources/volume/state.ts';
import { isDeepStrictEqual } from 'node:util';

export interface ObservedVolume {
  readonly claim?: PersistentVolumeClaim | undefined;
  /** A claim of our name that belongs to somebody else. */
  readonly foreign?: PersistentVolumeClaim | undefined;
  readonly job?: Job | undefined;
  /** Keeps what was uploaded until it is a disk. */
  readonly spool?: PersistentVolumeClaim | undefined;
  /** Looks, where the source lies, at how large its disk is. */
  readonly inspectJob?: Job | undefined;
  readonly pods: readonly Pod[];
  /** Taken of the source, to be restored. */
  readonly sourceSnapshot?: VolumeSnapshot | undefined;
  /** A claim that a snapshot was restored into for this one alone: the Job copies it. */
  readonly restored?: PersistentVolumeClaim | undefined;
  /** Class of the claim, or the one it is to be made with. */
  readonly storageClass?: StorageClass | undefined;
  /** What is said of it; read only where the claim is completed from it, or cloned. */
  readonly profile?: StorageProfile | undefined;
  /** Read only where the claim is to be made; `undefined` for sources of bytes. */
  readonly origin?: Origin | undefined;
  /** Who else wants the same bytes; read only where the claim is to be made, and what goes in is known beforehand. */
  readonly singleflight?: ObservedSingleflight | undefined;
  /** Names of claims with these bytes that lie where the volume, whose place its consumer chose, cannot be copied from. */
  readonly outOfReach?: ReadonlySet<string> | undefined;
  /** What is to be kept of it for others that want the same bytes. */
  readonly retainedCopy?: RetainedCopy | undefined;
  readonly warnings?: readonly KubeEvent[] | undefined;
  /** One with its data that is promised to the claim; looked for only where the claim is to be made, and its user says so. */
  readonly promised?: PersistentVolume | undefined;
  /** Of a volume whose source lies in another namespace. */
  readonly stage?: ObservedStage | undefined;
  /** The persistent volume that was handed over to the claim, while that is not marked as filled. */
  readonly handed?: PersistentVolume | undefined;
  /** Read only of a volume that is being deleted. */
  readonly orphans?: Orphans | undefined;
}

/** How a kind of golden image is found ready, by `<kind>.<group>`. */
export type OriginReaders = Readonly<Record<string, (kube: KubeClient, key: Key, mayUse: MayUse) => Promise<Origin>>>;
type Key = { readonly namespace: string; readonly name: string };

const snapshotGroupKind = 'VolumeSnapshot.snapshot.storage.k8s.io';

export const checkVolume = async (
  kube: KubeClient,
  volume: Volume,
  readers: OriginReaders,
): Promise<ObservedVolume> => {
  if (volume.deleting) return { pods: [], orphans: await readOrphans(kube, volume) };
  if (volume.state.phase === 'Failed' && !isRetryDue(volume)) return { pods: [] };
  const { own: job } = await readOwn(kube, jobs, volume.ref, transferJobName('import', volume.ref));
  const { own: claim, foreign } = await readOwn(kube, persistentVolumeClaims, volume.ref, volume.claim.name);
  const [sourceSnapshot, spool] = [
    await readSourceSnapshot(kube, volume),
    await readSpool(kube, { ref: volume.ref, source: bytesOf(volume) }),
  ];
  const own = { job, claim, foreign: foreign[0], sourceSnapshot, spool };
  if (claim === undefined) return { pods: [], ...own, ...(await readForClaim(kube, volume, readers)) };
  return { ...own, ...(await readWithClaim(kube, volume, { ...own, claim })) };
};

type Filling = Pick<ObservedVolume, 'job'> & { readonly claim: PersistentVolumeClaim };

const readWithClaim = async (
  kube: KubeClient,
  volume: Volume,
  { claim: read, job }: Filling,
): Promise<Omit<ObservedVolume, 'job'>> => {
  // Of a volume that is usable nothing is left to count.
  const isCounted = job === undefined || volume.state.phase === 'Available';
  const workers = isCounted ? [] : await readWorkers(kube, volume.ref);
  const claim = await readMarked(kube, volume.ref, { claim: read, job: isCounted ? undefined : job, workers });
  if (populationOf(claim) !== undefined) return { claim, pods: workers };
  const isOver = job !== undefined && readTransfer(job, workers, 0).is === 'succeeded';
  const isFetched = isOver && recordOf(claim) === undefined;
  // Its bytes are there, and nothing is to be kept of them for others.
  if (isFetched && !mayBeKept(volume)) return { claim, pods: workers };
  const storageClass = await readClass(kube, claim.spec.storageClassName);
  const warnings = await readWarnings(kube, volume, [claim, job, ...workers]);
  const retainedCopy = isFetched ? await readRetainedCopy(kube, volume, storageClass) : undefined;
  const late = job === undefined ? await readLate(kube, volume, { claim, storageClass }) : {};
  const binder = await readBinder(kube, volume, { claim, storageClass });
  const [handed, restored] = [await readHanded(kube, claim), await readRestored(kube, volume.ref, claim)];
  return { claim, pods: workers, storageClass, warnings, retainedCopy, handed, restored, ...late, ...binder };
};

const readBinder = async (
  kube: KubeClient,
  volume: Volume,
  { claim, storageClass }: Pick<ObservedVolume, 'storageClass'> & { readonly claim: PersistentVolumeClaim },
): Promise<Pick<ObservedVolume, 'inspectJob'>> =>
  needsBinder(volume, claim, storageClass) ? { inspectJob: await readLookJob(kube, volume) } : {};

const readHanded = async (kube: KubeClient, claim: PersistentVolumeClaim): Promise<PersistentVolume | undefined> => {
  const name = recordOf(claim)?.volume;
  return name === undefined ? undefined : kube.get(persistentVolumes, { name });
};

const readSourceSnapshot = async (kube: KubeClient, volume: Volume): Promise<VolumeSnapshot | undefined> => {
  const { source } = volume;
  // Whatever stands for a claim in the end may need one; a snapshot does not.
  if (source?.type === 'object' ? source.groupKind === snapshotGroupKind : contentOfVolume(volume) === undefined)
    return undefined;
  return (await readOwn(kube, volumeSnapshots, volume.ref, cloneName(volume))).own;
};

const readForClaim = async (
  kube: KubeClient,
  volume: Volume,
  readers: OriginReaders,
): Promise<Partial<ObservedVolume>> => {
  const promised = await findPromised(kube, volume);
  if (promised !== undefined) return { promised };
  const made = mayLieElsewhere(volume) ? await readStage(kube, volume) : undefined;
  if (made !== undefined) return { stage: made, storageClass: await readStageClass(kube, made) };
  const { ref } = volume;
  const found = await readOrigin(kube, volume, readers);
  if (found !== undefined && found.is !== 'ready') return { origin: found };
  const around = await readAround(kube, volume, found);
  const { namespace = '' } = found ?? ref;
  const isLookedAt = needsInspection(volume) || found?.clone.mayHaveGrown === true;
  const looked = isLookedAt ? await readInspection(kube, { ref: { ...ref, namespace } }) : {};
  if (namespace === ref.namespace) return { ...around, ...looked };
  return { ...around, ...looked, stage: await readPlace(kube, volume, namespace) };
};

/** The class, and what depends on it. */
const readAround = async (kube: KubeClient, volume: Volume, found: ReadyOrigin | undefined) => {
  const { className, isForDisk } = volume.claim;
  const storageClass = await readClass(kube, className ?? found?.className, isForDisk);
  const origin = await withRestoreClass(kube, found, storageClass);
  const profile = await readProfileFor(kube, volume, storageClass);
  const singleflight = await readSingleflightOf(kube, volume, storageClass);
  return { origin, storageClass, profile, ...(singleflight === undefined ? {} : { singleflight }) };
};

/** `undefined` where there is nothing to share yet: the content is not known beforehand, or a consumer is to say first where the volume lies. */
const readSingleflightOf = async (
  kube: KubeClient,
  volume: Volume,
  storageClass: StorageClass | undefined,
): Promise<ObservedSingleflight | undefined> => {
  const content = contentOfVolume(volume);
  if (content === undefined || storageClass === undefined || isHeldBack(volume, storageClass)) return undefined;
  return readSingleflight(kube, volume.ref, { content, className: storageClass.metadata.name });
};

/** It completes the claim, and says how volumes are cloned. */
const readProfileFor = async (
  kube: KubeClient,
  volume: Volume,
  storageClass: StorageClass | undefined,
): Promise<StorageProfile | undefined> => {
  const isCloned = volume.source?.type === 'object' || contentOfVolume(volume) !== undefined;
  return volume.claim.isProfiled === true || isCloned ? readProfile(kube, storageClass?.metadata.name) : undefined;
};

const readStageClass = async (kube: KubeClient, { claim }: ObservedStage): Promise<StorageClass | undefined> =>
  claim?.spec.storageClassName === undefined ? undefined : readClass(kube, claim.spec.storageClassName);

/** A source of bytes whose disk nobody told the size of. */
export const needsInspection = ({ source, claim }: Volume): boolean =>
  source?.type === 'transfer' && claim.bytes === undefined && claim.diskBytes === undefined;

const readInspection = async (
  kube: KubeClient,
  { ref }: Pick<Volume, 'ref'>,
): Promise<Partial<Pick<ObservedVolume, 'inspectJob' | 'pods'>>> => {
  const inspectJob = await readLookJob(kube, { ref });
  return inspectJob === undefined ? {} : { inspectJob, pods: await readWorkers(kube, ref) };
};

const readLookJob = async (kube: KubeClient, { ref }: Pick<Volume, 'ref'>): Promise<Job | undefined> =>
  (await readOwn(kube, jobs, ref, transferJobName('inspect', ref))).own;

const readOrigin = async (kube: KubeClient, volume: Volume, readers: OriginReaders): Promise<Origin | undefined> => {
  const { source } = volume;
  const mayUse = mayUseOf(volume.ref.namespace, volume.grants);
  if (source?.type !== 'object') return undefined;
  const { groupKind, namespace, name } = source;
  const key = { namespace, name };
  switch (groupKind) {
    case 'PersistentVolumeClaim':
      return readClaimOrigin(kube, key, { what: `PersistentVolumeClaim ${namespace}/${name}`, mayUse });
    case snapshotGroupKind:
      return readSnapshotOrigin(kube, key, { what: `VolumeSnapshot ${namespace}/${name}`, mayUse });
    default:
      return (
        readers[groupKind]?.(kube, key, mayUse) ?? waitFor('SourceUnknown', `nothing is known of ${groupKind} ${name}`)
      );
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

// Who else has the bytes of a volume whose place its consumer chose, read once that is known; and who of them can be reached from there.

interface Placed {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass | undefined;
}

/** Nothing for a volume that waits for its consumer still, or never did. */
const readLate = async (
  kube: KubeClient,
  volume: Volume,
  { claim, storageClass }: Placed,
): Promise<{ readonly singleflight?: ObservedSingleflight; readonly outOfReach?: ReadonlySet<string> }> => {
  const content = contentOfVolume(volume);
  const isDecided = claim.status?.phase !== 'Bound' || recordOf(claim) !== undefined;
  if (content === undefined || isDecided || storageClass === undefined || !isHeldBack(volume, storageClass)) return {};
  const singleflight = await readSingleflight(kube, volume.ref, { content, className: storageClass.metadata.name });
  const claims = singleflight.kept.flatMap(({ claim: kept }) => kept ?? []);
  return { singleflight, outOfReach: await readOutOfReach(kube, claim, claims) };
};

/** Nodes that can reach a volume; `undefined`: all of them. */
const readReach = async (kube: KubeClient, { spec }: PersistentVolumeClaim): Promise<unknown> => {
  const name = spec.volumeName ?? '';
  return name === '' ? undefined : (await kube.get(persistentVolumes, { name }))?.spec.nodeAffinity;
};

/** A pod that copies needs both volumes on one node. */
const readOutOfReach = async (
  kube: KubeClient,
  own: PersistentVolumeClaim,
  others: readonly PersistentVolumeClaim[],
): Promise<ReadonlySet<string>> => {
  if (others.length === 0) return new Set();
  const here = await readReach(kube, own);
  const far = await Promise.all(
    others.map(async (other) => {
      const there = await readReach(kube, other);
      return here === undefined || there === undefined || isDeepStrictEqual(here, there) ? [] : [other.metadata.name];
    }),
  );
  return new Set(far.flat());
};
