// Reads of children and classes that every plan with a volume needs. Called by backends and by plans of volumes; nothing is decided here.
import { type StorageProfile, storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import {
  type Job,
  type KubeEvent,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
  jobs,
  kubeEvents,
  persistentVolumeClaims,
  pods,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { type VolumeSnapshotClass, volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import type { Condition, KubeObject, ObjectRef, ResourceType } from '#shared/api/object.ts';
import { childrenOf, isOwnedBy } from '#shared/api/owner.ts';
import type { KubeClient, ListOptions } from '#shared/clients/kube/client.ts';
import { defaultClassOf } from '#shared/populate/storage/profile.ts';
import { chooseSnapshotClass } from '#shared/populate/storage/snapshot.ts';
import { isComplete, readTransfer } from '#shared/populate/job/attempts.ts';
import { populationOf } from '#shared/populate/population.ts';
import { isNotFound } from '#shared/runtime/errors.ts';
import { transferJobName } from '#shared/populate/job/transfer-job.ts';

/** The child of that name, distinguished from an object of the same name that belongs to somebody else. */
export const readOwn = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  owner: ObjectRef,
  name: string,
): Promise<{ readonly own?: T; readonly foreign: readonly T[] }> => {
  const object = await kube.get(type, { namespace: owner.namespace, name });
  if (object === undefined) return { foreign: [] };
  return isOwnedBy(object, owner.uid) ? { own: object, foreign: [] } : { foreign: [object] };
};

/** Pods of all transfers of one owner. */
export const readWorkers = async (kube: KubeClient, owner: ObjectRef): Promise<readonly Pod[]> =>
  (await kube.list(pods, { namespace: owner.namespace, labelSelector: childrenOf(owner.uid) })).items;

interface ClaimOfJob {
  readonly claim: PersistentVolumeClaim;
  readonly job: Job | undefined;
  readonly workers: readonly Pod[];
}

/**
 * The claim that a Job fills; read again where the Job is complete and the pod that reported it is gone: another pass marks the claim before it takes that
 * pod away, and both may have come between the reads of this one.
 */
export const readMarked = async (
  kube: KubeClient,
  owner: ObjectRef,
  { claim, job, workers }: ClaimOfJob,
): Promise<PersistentVolumeClaim> => {
  const isReported = job === undefined || !isComplete(job) || readTransfer(job, workers, 0).is === 'succeeded';
  if (isReported || populationOf(claim) !== undefined) return claim;
  return (await readOwn(kube, persistentVolumeClaims, owner, claim.metadata.name)).own ?? claim;
};

/** The class named, or the default one: where `forDisks` is false, that of the cluster whatever is marked for disks of virtual machines. */
export const readClass = async (
  kube: KubeClient,
  name: string | undefined,
  forDisks = true,
): Promise<StorageClass | undefined> => {
  if (name !== undefined) return kube.get(storageClasses, { name });
  const { items } = await kube.list(storageClasses);
  return defaultClassOf(items, forDisks);
};

/** None where the cluster does not have the kind at all. */
export const listIfServed = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  options?: ListOptions,
): Promise<readonly T[]> => {
  try {
    return (await kube.list(type, options)).items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
};

export const readSnapshotClasses = (kube: KubeClient): Promise<readonly VolumeSnapshotClass[]> =>
  listIfServed(kube, volumeSnapshotClasses);

/** What is said of a storage class; `undefined` where nobody has described it yet. */
export const readProfile = async (
  kube: KubeClient,
  className: string | undefined,
): Promise<StorageProfile | undefined> =>
  className === undefined ? undefined : kube.get(storageProfiles, { name: className });

/** Which of the snapshot classes of its driver the StorageProfile of a class names. Nobody is asked where there is no choice. */
export const readToldClass = async (
  kube: KubeClient,
  fitting: readonly VolumeSnapshotClass[],
  className: string | undefined,
): Promise<string | undefined> => {
  if (fitting.length < 2) return undefined;
  const { spec = {}, status = {} } = (await readProfile(kube, className)) ?? {};
  return [spec.snapshotClass, status.snapshotClass].find((told) =>
    fitting.some(({ metadata }) => metadata.name === told),
  );
};

/** The class that makes snapshots of volumes of a storage class: the one its StorageProfile names, else the usual one of its driver. */
export const readSnapshotClass = async (
  kube: KubeClient,
  driver: string | undefined,
  className: string | undefined,
): Promise<string | undefined> => {
  const fitting = (await readSnapshotClasses(kube)).filter((candidate) => candidate.driver === driver);
  const choice = chooseSnapshotClass(fitting, driver, await readToldClass(kube, fitting, className));
  return choice.is === 'found' ? choice.name : undefined;
};

/**
 * Why nothing moves, in the words of those who should move it: a full pool, a quota, a volume that cannot be attached. Of each child as it is now: what
 * ended, or got what it was waiting for, has nothing to complain about any more.
 */
export const readNewestWarnings = async (
  kube: KubeClient,
  children: readonly KubeObject[],
): Promise<readonly KubeEvent[]> => {
  const present = children.filter((child) => !isSettled(child));
  const warnings = await Promise.all(present.map((child) => readNewestWarning(kube, child)));
  return warnings.filter((warning) => warning !== undefined);
};

interface Settling extends KubeObject {
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly Pick<Condition, 'type' | 'status' | 'lastTransitionTime'>[];
  };
}

/** A pod of an earlier attempt, a claim that is bound, a Job that is over. */
const isSettled = ({ status = {} }: Settling): boolean =>
  ['Succeeded', 'Failed', 'Bound'].includes(status.phase ?? '') ||
  (status.conditions ?? []).some(({ type, status: is }) => ['Complete', 'Failed'].includes(type) && is === 'True');

/** RFC 3339: since when a child is as it is. Complaints from before were about what it was. */
const stateSince = ({ metadata, status }: Settling): string =>
  (status?.conditions ?? [])
    .flatMap(({ status: is, lastTransitionTime }) => (is === 'True' ? (lastTransitionTime ?? []) : []))
    .reduce((newest, time) => (time > newest ? time : newest), metadata.creationTimestamp ?? '');

const readNewestWarning = async (kube: KubeClient, child: KubeObject): Promise<KubeEvent | undefined> => {
  const { uid = '', namespace } = child.metadata;
  const fieldSelector = `involvedObject.uid=${uid},type=Warning`;
  const { items } = await kube.list(kubeEvents, { namespace, fieldSelector });
  const since = Date.parse(stateSince(child));
  return items
    .filter((event) => Number.isNaN(since) || timeOf(event) >= Math.floor(since / 1000) * 1000)
    .toSorted((a, b) => timeOf(b) - timeOf(a))
    .at(0);
};

/** The scheduler, for one, writes no `lastTimestamp`. In whole seconds, as most times of Kubernetes are. */
const timeOf = ({ lastTimestamp, series, eventTime, metadata }: KubeEvent): number => {
  const text = series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '';
  return Math.floor((Date.parse(text) || 0) / 1000) * 1000;
};

// Jobs that read what an image is kept in: for a download, or into a backup target. While they are there its volume does not go, and whoever throws it
// away takes them along. Called where an image is removed or started over.

const modes = ['serve', 'backup'] as const;

export const readReaders = async (kube: KubeClient, owner: ObjectRef): Promise<readonly Job[]> => {
  const found = await Promise.all(modes.map((mode) => readOwn(kube, jobs, owner, transferJobName(mode, owner))));
  return found.flatMap(({ own }) => own ?? []);
};
