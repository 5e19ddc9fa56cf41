// What the cdi backend reads before it decides: its DataVolume, the claim of that, and what keeps both waiting.
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
import type { KubeObject } from '#shared/api/object.ts';
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
import type { Image } from '#shared/backends/image.ts';

export interface RestoreStage {
  readonly volume?: PersistentVolumeClaim | undefined;
  readonly importJob?: Job | undefined;
}

/** The Job first, since it is made after the claim it fills. */
export const readStage = async (kube: KubeClient, image: Image): Promise<{ readonly stage?: RestoreStage }> => {
  if (!needsStage(image)) return {};
  const { own: importJob } = await readOwn(kube, jobs, image.ref, transferJobName('import', image.ref));
  const { own: volume } = await readOwn(kube, persistentVolumeClaims, image.ref, stageName(image));
  return { stage: { volume, importJob } };
};

export const stageName = ({ ref }: Pick<Image, 'ref'>): string => `restore-${ref.uid}`;

export interface ObservedCdi {
  readonly dataVolume?: DataVolume | undefined;
  /** Objects of our names that belong to somebody else. They are never touched. */
  readonly foreign: readonly KubeObject[];
  /** The DataVolume's. */
  readonly claim?: PersistentVolumeClaim | undefined;
  /** Looks at a source whose disk nobody told the size of. */
  readonly inspectJob?: Job | undefined;
  readonly pods: readonly Pod[];
  /** Read the claim; looked for only where the image is to be removed or started over. */
  readonly readers?: readonly Job[];
  /** Of an image that is restored: what its disk is brought into first. */
  readonly stage?: RestoreStage | undefined;
  /** What it found, where that was read from its pods alone. */
  readonly looked?: SucceededRun | undefined;
  /** Read only where the DataVolume is to be made. */
  readonly storageClass?: StorageClass | undefined;
  /** What is said of that class; read only where the disk is brought into a claim of our own first. */
  readonly profile?: StorageProfile | undefined;
  /** It was not looked for: how large the disk is comes first. */
  readonly isClassUnread?: true;
  /** The claim it is exported from; read only where the DataVolume is to be made. */
  readonly exported?: PersistentVolumeClaim | undefined;
  /** The golden claim of the image that is cloned; read only where the DataVolume is to be made. */
  readonly cloned?: Cloned | undefined;
  /** Newest Warning about what keeps the image waiting. */
  readonly warnings?: readonly KubeEvent[] | undefined;
}

const dataVolumeNameOf = ({ ref }: Image): string => ref.name;

const nothing: ObservedCdi = { foreign: [], pods: [] };

export const check = async (kube: KubeClient, image: Image): Promise<ObservedCdi> => {
  const isAsked = image.deleting || isRetryDue(image);
  if (image.state.phase === 'Failed' && !isAsked) return nothing;
  // What was not made is not looked for first: making it finds out.
  if (image.trustsStatus === true && image.state.children?.volume === undefined)
    return { ...nothing, ...(await readForNew(kube, image)) };
  const { own: dataVolume, foreign } = await readOwn(kube, dataVolumeKind.type, image.ref, dataVolumeNameOf(image));
  const observed = { dataVolume, foreign, pods: [] };
  if (!isAsked) return { ...observed, ...(await readMade(kube, image, dataVolume)) };
  const claim = await readClaim(kube, image, dataVolume);
  const around = {
    ...(await readStage(kube, image)),
    ...(await readInspection(kube, image)),
    readers: await readReaders(kube, image.ref),
  };
  return { ...observed, claim, ...(await readForNew(kube, image)), ...around };
};

/** What is under way needs no other look, and there are many of them. */
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

/** Phases in which bytes move, or storage works on them: it says nothing until it is done. */
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

/** What has just been made has nothing to complain about. What nobody has moved on since it began may have, and a CDI does not say so. */
const isStill = ({ state }: Image, dataVolume: DataVolume | undefined): boolean =>
  state.phase === 'Pending' &&
  state.deadline !== undefined &&
  (state.reason !== 'Starting' || dataVolume?.status?.phase !== undefined);

/** Its claim has its name. While the DataVolume is there, only what it made counts; afterwards, what is left of it. */
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

/** A Job looks at its source first. */
const needsLook = ({ source, storage }: Image): boolean => isFetched(source) && storage.capacityBytes === undefined;

/** What the Job has found is with its pods. */
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
