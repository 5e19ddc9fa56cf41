// Reads the input of a claim: its source, its class, and other volumes with the same bytes. Called while there is no claim.
import { isOffered } from '#shared/access/offers.ts';
import { type AskMayUse, mayUseOf } from '#shared/access/permissions.ts';
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import {
  type Job,
  type KubeEvent,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
  csiDrivers,
  jobs,
} from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import {
  type Origin,
  type ReadyOrigin,
  readClaimOrigin,
  readSnapshotOrigin,
  waitFor,
} from '#shared/populate/clone/origin.ts';
import { cloneName } from '#shared/populate/clone/plan.ts';
import { withRestoreClass } from '#shared/populate/clone/restoring.ts';
import { readSucceeded, readTransfer } from '#shared/populate/job/attempts.ts';
import { transferJobName } from '#shared/populate/job/transfer-job.ts';
import { readClass, readNewestWarnings, readOwn, readProfile, readWorkers } from '#shared/populate/reading.ts';
import { readSingleflight } from '#shared/populate/singleflight/read.ts';
import type { ObservedSingleflight } from '#shared/populate/singleflight/singleflight.ts';
import { findPromised } from '#shared/populate/volume/binding.ts';
import {
  type ObservedStage,
  mayLieElsewhere,
  readPlace,
  readStage,
} from '#shared/populate/volume/elsewhere-observed.ts';
import {
  type ObservedVolume,
  type OriginReaders,
  type SourceReaders,
  mayBe,
  needsInspection,
  nothing,
} from '#shared/populate/volume/observed.ts';
import { readGoldenCopy } from '#shared/populate/volume/golden-copy-observed.ts';
import { mayNeedPrime } from '#shared/populate/volume/prime.ts';
import { isHeldBack } from '#shared/populate/volume/state.ts';
import { type Volume, contentOfVolume } from '#shared/populate/volume/volume.ts';

/** A source that leads to a claim, or a volume with the same bytes, may need a snapshot; a snapshot does not. */
export const readSourceSnapshot = async (kube: KubeClient, volume: Volume): Promise<VolumeSnapshot | undefined> => {
  const { source } = volume;
  const mayNeedOne =
    source?.type === 'object' ? source.groupKind !== snapshotGroupKind : contentOfVolume(volume) !== undefined;
  return mayNeedOne ? (await readOwn(kube, volumeSnapshots, volume.ref, cloneName(volume))).own : undefined;
};

export const readJob = (kube: KubeClient, { ref }: Pick<Volume, 'ref'>, mode: 'inspect' | 'import') =>
  readOwn(kube, jobs, ref, transferJobName(mode, ref));

const snapshotGroupKind = 'VolumeSnapshot.snapshot.storage.k8s.io';

export const readForClaim = async (
  kube: KubeClient,
  volume: Volume,
  readers: SourceReaders,
): Promise<ObservedVolume> => {
  const promised = await findPromised(kube, volume);
  if (promised !== undefined) return { ...nothing, promised };
  const made = mayLieElsewhere(volume) ? await readStage(kube, volume) : undefined;
  if (made !== undefined) return { ...nothing, stage: made, storageClass: await readStageClass(kube, made) };
  if (isSizeFirst(volume)) return readBySize(kube, volume);
  const origin = await readOrigin(kube, volume, readers);
  return origin?.is === 'waiting' ? { ...nothing, origin } : readFrom(kube, volume, origin, readers);
};

/** `undefined` for sources of bytes. */
const readFrom = async (
  kube: KubeClient,
  volume: Volume,
  found: ReadyOrigin | undefined,
  { copyRight }: SourceReaders,
): Promise<ObservedVolume> => {
  const { ref } = volume;
  const place = await readAround(kube, volume, found);
  const around = {
    ...place,
    goldenCopy: await readGoldenCopy(kube, volume, place, copyRight),
    sourceSnapshot: await readSourceSnapshot(kube, volume),
  };
  const { namespace = '' } = found ?? ref;
  const isLookedAt = needsInspection(volume) || found?.clone.mayHaveGrown === true;
  const looked = isLookedAt ? await readLook(kube, { ...volume, ref: { ...ref, namespace } }) : nothing;
  if (namespace === ref.namespace) return { ...looked, ...around };
  return { ...looked, ...around, stage: await readPlace(kube, volume, namespace) };
};

/** Whether the size of the disk must be determined first: nothing is shared, and its class cannot reject anything. */
const isSizeFirst = (volume: Volume): boolean =>
  needsInspection(volume) && volume.claim.isProfiled !== true && contentOfVolume(volume) === undefined;

const readBySize = async (kube: KubeClient, volume: Volume): Promise<ObservedVolume> => {
  const look = await readLook(kube, volume);
  const isKnown =
    look.looked !== undefined ||
    (look.inspectJob !== undefined && readTransfer(look.inspectJob, look.pods, 0).is === 'succeeded');
  return isKnown ? { ...look, ...(await readAround(kube, volume, undefined)) } : { ...look, isClassUnread: true };
};

/** The class, and what depends on it. */
const readAround = async (kube: KubeClient, volume: Volume, found: ReadyOrigin | undefined) => {
  const { className, isForDisk } = volume.claim;
  const storageClass = await readClass(kube, className ?? found?.className, isForDisk);
  const origin = await withRestoreClass(kube, found, storageClass);
  const profile = await readProfileFor(kube, volume, storageClass);
  const isDriverOfCsi = await readDriver(kube, volume, storageClass);
  const singleflight = await readSingleflightOf(kube, volume, storageClass);
  return { origin, storageClass, profile, isDriverOfCsi, ...(singleflight === undefined ? {} : { singleflight }) };
};

/** `undefined` if nothing can be shared yet: the content is not known in advance, or the first consumer decides where the volume is. */
const readSingleflightOf = async (
  kube: KubeClient,
  volume: Volume,
  storageClass: StorageClass | undefined,
): Promise<ObservedSingleflight | undefined> => {
  const content = contentOfVolume(volume);
  if (content === undefined || storageClass === undefined || isHeldBack(volume, storageClass)) return undefined;
  return readSingleflight(kube, volume.ref, { content, className: storageClass.metadata.name });
};

const readDriver = async (
  kube: KubeClient,
  volume: Volume,
  storageClass: StorageClass | undefined,
): Promise<boolean | undefined> =>
  storageClass !== undefined && mayNeedPrime(volume, storageClass)
    ? (await kube.get(csiDrivers, { name: storageClass.provisioner })) !== undefined
    : undefined;

/** It completes the claim and defines the clone strategy. */
const readProfileFor = async (
  kube: KubeClient,
  volume: Volume,
  storageClass: StorageClass | undefined,
): Promise<StorageProfile | undefined> => {
  const isCloned = volume.source?.type === 'object' || contentOfVolume(volume) !== undefined;
  return volume.claim.isProfiled === true || volume.claim.role === 'volume' || isCloned
    ? readProfile(kube, storageClass?.metadata.name)
    : undefined;
};

const readStageClass = async (kube: KubeClient, { claim }: ObservedStage): Promise<StorageClass | undefined> =>
  claim?.spec.storageClassName === undefined ? undefined : readClass(kube, claim.spec.storageClassName);

/** The inspection Job, if one may exist. Its result is in its pods. */
const readLook = async (kube: KubeClient, volume: Volume): Promise<ObservedVolume> => {
  const { ref, trustsStatus, state } = volume;
  if (!mayBe(volume, state.children?.job)) return nothing;
  const workers = trustsStatus === true ? await readWorkers(kube, ref) : undefined;
  const looked = workers && readSucceeded(transferJobName('inspect', ref), workers);
  if (looked !== undefined) return { ...nothing, looked };
  const { own: inspectJob } = await readJob(kube, volume, 'inspect');
  if (inspectJob === undefined) return nothing;
  const found = workers ?? (await readWorkers(kube, ref));
  const idle = found.filter(({ status }) => status?.phase === 'Pending');
  return { inspectJob, pods: found, warnings: await readWarnings(kube, volume, [inspectJob, ...idle]) };
};

const readOrigin = async (kube: KubeClient, volume: Volume, readers: SourceReaders): Promise<Origin | undefined> => {
  const { source } = volume;
  const isGranted = mayUseOf(volume.ref.namespace, volume.grants);
  const mayUse: AskMayUse = (used) => isGranted(used) || isOffered(kube, volume.ref.namespace, used);
  if (source?.type !== 'object') return undefined;
  const { groupKind, namespace, name } = source;
  const key = { namespace, name };
  const reader = readers.origins?.[groupKind] ?? usualReaders[groupKind];
  return reader === undefined
    ? waitFor('SourceUnknown', `nothing is known about ${groupKind} ${name}`)
    : reader(kube, key, mayUse);
};

const usualReaders: OriginReaders = {
  PersistentVolumeClaim: (kube, key, mayUse) =>
    readClaimOrigin(kube, key, { what: `PersistentVolumeClaim ${key.namespace}/${key.name}`, mayUse }),
  [snapshotGroupKind]: (kube, key, mayUse) =>
    readSnapshotOrigin(kube, key, { what: `VolumeSnapshot ${key.namespace}/${key.name}`, mayUse }),
};

const waitingPhases: readonly string[] = ['Pending', 'Cloning'];

/** Only during a wait: a child that was just created has no warnings. */
export const readWarnings = async (
  kube: KubeClient,
  { state }: Volume,
  children: readonly (PersistentVolumeClaim | Job | Pod | undefined)[],
): Promise<readonly KubeEvent[]> =>
  state.deadline === undefined || !waitingPhases.includes(state.phase)
    ? []
    : readNewestWarnings(
        kube,
        children.filter((child) => child !== undefined),
      );
