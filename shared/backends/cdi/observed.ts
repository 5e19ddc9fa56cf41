// Reads of the cdi backend: its DataVolume, the claim of that, and the obstacles of both.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import {
  type Job,
  type KubeEvent,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
  jobs,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { type KubeObject, isLeftBy } from '#shared/api/object.ts';
import { needsStage } from '#shared/backends/cdi/manifests.ts';
import { type Cloned, readCloned } from '#shared/backends/source-claim.ts';
import { readExported } from '#shared/backends/source-claim.ts';
import { isRetryDue } from '#shared/populate/filled.ts';
import { readReaders } from '#shared/populate/reading.ts';
import { readClass, readNewestWarnings, readOwn, readProfile, readWorkers } from '#shared/populate/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type SucceededRun, readSucceeded } from '#shared/populate/job/attempts.ts';
import { isFetched } from '#shared/populate/source.ts';
import { transferJobName } from '#shared/populate/job/transfer-job.ts';
import type { Image } from '#shared/backends/backend.ts';

export interface RestoreStage {
  readonly volume?: PersistentVolumeClaim | undefined;
  readonly importJob?: Job | undefined;
}

/** The Job is read first, because it is created after the claim it fills. */
export const readStage = async (kube: KubeClient, image: Image): Promise<{ readonly stage?: RestoreStage }> => {
  if (!needsStage(image)) return {};
  const { own: importJob } = await readOwn(kube, jobs, image.ref, transferJobName('import', image.ref));
  const { own: volume } = await readOwn(kube, persistentVolumeClaims, image.ref, stageName(image));
  return { stage: { volume, importJob } };
};

export const stageName = ({ ref }: Pick<Image, 'ref'>): string => `restore-${ref.uid}`;

export interface ObservedCdi {
  readonly dataVolume?: DataVolume | undefined;
  /** Objects with our names and other owners. They are never changed. */
  readonly foreign: readonly KubeObject[];
  /** The claim of the DataVolume. */
  readonly claim?: PersistentVolumeClaim | undefined;
  /** Inspects a source if the size of its disk is unknown. */
  readonly inspectJob?: Job | undefined;
  readonly pods: readonly Pod[];
  /** Jobs that read the claim; read only if the image is to be removed or restarted. */
  readonly readers?: readonly Job[];
  /** For a restored image: the claim that its disk is restored into first. */
  readonly stage?: RestoreStage | undefined;
  /** Its result, if it was read from the pods without the Job. */
  readonly looked?: SucceededRun | undefined;
  /** Read only if the DataVolume is to be created. */
  readonly storageClass?: StorageClass | undefined;
  /** The profile of that class; read only if the disk is restored into our own claim first. */
  readonly profile?: StorageProfile | undefined;
  /** It was not read: the size of the disk must be determined first. */
  readonly isClassUnread?: true;
  /** The claim it is exported from; read only if the DataVolume is to be created. */
  readonly exported?: PersistentVolumeClaim | undefined;
  /** The golden claim of the cloned image; read only if the DataVolume is to be created. */
  readonly cloned?: Cloned | undefined;
  /** Newest Warning event that explains the wait. */
  readonly warnings?: readonly KubeEvent[] | undefined;
}

const dataVolumeNameOf = ({ ref }: Image): string => ref.name;

const nothing: ObservedCdi = { foreign: [], pods: [] };

export const check = async (kube: KubeClient, image: Image): Promise<ObservedCdi> => {
  const isAsked = image.deleting || isRetryDue(image);
  if (image.state.phase === 'Failed' && !isAsked) return nothing;
  // A child that was not created yet is not read first: its creation reports a conflict.
  const isOriginal = image.comesFromOriginal === true;
  if (image.trustsStatus === true && image.state.children?.volume === undefined && !isOriginal)
    return { ...nothing, ...(await readForNew(kube, image)) };
  const { own, foreign } = await readOwn(kube, dataVolumeKind.type, image.ref, dataVolumeNameOf(image));
  const left = isOriginal ? foreign.find((found) => isLeftBy(found, image.ref.uid)) : undefined;
  const dataVolume = own ?? left;
  const observed = { dataVolume, foreign: left === undefined ? foreign : [], pods: [] };
  if (!isAsked) return { ...observed, ...(await readMade(kube, image, dataVolume)) };
  const claim = await readOwnClaim(kube, image, observed);
  const around = {
    ...(await readStage(kube, image)),
    ...(await readInspection(kube, image)),
    readers: await readReaders(kube, image.ref),
  };
  return { ...observed, claim, ...(await readForNew(kube, image)), ...around };
};

/** A running import needs no other reads, and there may be many of them. */
const readMade = async (
  kube: KubeClient,
  image: Image,
  dataVolume: DataVolume | undefined,
): Promise<Partial<ObservedCdi>> => {
  const { phase = '' } = dataVolume?.status ?? {};
  const isUsable = image.state.phase === 'Available';
  if (dataVolume === undefined && !isUsable)
    return { claim: await readClaim(kube, image, dataVolume), ...(await readForNew(kube, image)) };
  if (isUsable) return { claim: await readClaim(kube, image, dataVolume) };
  if (phase === 'Succeeded')
    return { claim: await readClaim(kube, image, dataVolume), ...(await readStage(kube, image)) };
  if (runningPhases.includes(phase) || !isStill(image, dataVolume)) return {};
  const claim = await readClaim(kube, image, dataVolume);
  const complaining = [dataVolume, claim].filter((child) => child !== undefined);
  return { claim, warnings: await readNewestWarnings(kube, complaining) };
};

/** Phases in which bytes are moved or the storage works: it reports nothing until it is done. */
export const runningPhases: readonly string[] = [
  'UploadReady',
  'ImportInProgress',
  'CloneInProgress',
  'CSICloneInProgress',
  'CloneFromSnapshotSourceInProgress',
  'SnapshotForSmartCloneInProgress',
  'PrepClaimInProgress',
  'RebindInProgress',
];

/** A new DataVolume has no warnings. One without any progress may have some, which a CDI does not report on it. */
const isStill = ({ state }: Image, dataVolume: DataVolume | undefined): boolean =>
  state.phase === 'Pending' &&
  state.deadline !== undefined &&
  (state.reason !== 'Starting' || dataVolume?.status?.phase !== undefined);

/** Its claim has the same name. While the DataVolume exists, only its own claim counts; afterwards, the remaining one. */
const readClaim = async (
  kube: KubeClient,
  { ref }: Image,
  dataVolume: DataVolume | undefined,
): Promise<PersistentVolumeClaim | undefined> => {
  const claim = await kube.get(persistentVolumeClaims, { namespace: ref.namespace, name: ref.name });
  const isOf = ({ kind, uid, name }: { kind: string; uid: string; name: string }): boolean =>
    kind === 'DataVolume' && (dataVolume === undefined ? name === ref.name : uid === dataVolume.metadata.uid);
  return claim?.metadata.ownerReferences?.some(isOf) === true ? claim : undefined;
};

/** The claim of another one's DataVolume of this name is not its own. */
const readOwnClaim = (kube: KubeClient, image: Image, { dataVolume, foreign }: ObservedCdi) =>
  foreign.length > 0 ? undefined : readClaim(kube, image, dataVolume);

const readForNew = async (kube: KubeClient, image: Image): Promise<Partial<ObservedCdi>> => {
  const { source } = image;
  const mayBeLooking = image.trustsStatus !== true || image.state.children?.job !== undefined;
  if (needsLook(image) && !mayBeLooking) return { isClassUnread: true };
  const storageClass = await readClass(kube, image.storage.className);
  const looked = needsLook(image) ? await readLook(kube, image) : {};
  const cloned = source?.type === 'clone' ? await readCloned(kube, source) : undefined;
  const profile = needsStage(image) ? await readProfile(kube, storageClass?.metadata.name) : undefined;
  const staged = await readStaged(kube, image);
  return { ...looked, ...staged, storageClass, profile, cloned, exported: await readExported(kube, image) };
};

/** A Job inspects its source first. */
const needsLook = ({ source, storage }: Image): boolean => isFetched(source) && storage.capacityBytes === undefined;

/** The result of the Job is in its pods. */
const readLook = async (kube: KubeClient, image: Image): Promise<Partial<ObservedCdi>> => {
  if (image.trustsStatus !== true) return readInspection(kube, image);
  const pods = await readWorkers(kube, image.ref);
  const looked = readSucceeded(transferJobName('inspect', image.ref), pods);
  return looked === undefined ? readInspection(kube, image) : { looked };
};

const readStaged = async (kube: KubeClient, image: Image): Promise<Partial<ObservedCdi>> => {
  const stage = await readStage(kube, image);
  return stage.stage?.importJob === undefined ? stage : { ...stage, pods: await readWorkers(kube, image.ref) };
};

const readInspection = async (kube: KubeClient, { ref }: Image): Promise<Partial<ObservedCdi>> => {
  const { own: inspectJob } = await readOwn(kube, jobs, ref, transferJobName('inspect', ref));
  return inspectJob === undefined ? {} : { inspectJob, pods: await readWorkers(kube, ref) };
};
