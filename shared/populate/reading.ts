// Reads the children and classes that every plan with a volume needs. Called by backends and by plans of volumes; decides nothing.
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
import {
  childrenOf,
  type Condition,
  isOwnedBy,
  type KubeObject,
  type ObjectRef,
  type ResourceType,
} from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { listIfServed } from '#shared/clients/kube/tolerant.ts';
import { defaultClassOf } from '#shared/populate/storage/profile.ts';
import { chooseSnapshotClass } from '#shared/populate/storage/snapshot.ts';
import { isComplete, readTransfer } from '#shared/populate/job/attempts.ts';
import { populationOf } from '#shared/populate/population.ts';
import { transferJobName } from '#shared/populate/job/transfer-job.ts';

/** The child with that name, distinguished from an object with the same name and another owner. */
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
 * The claim that a Job fills. It is read again if the Job is complete and the pod with its report is gone: another pass marks the claim before
 * it removes that pod, and both may have happened between the reads of this pass.
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

/** The named class, or the default one: if `forDisks` is false, the default of the cluster, ignoring the mark for disks of virtual machines. */
export const readClass = async (
  kube: KubeClient,
  name: string | undefined,
  forDisks = true,
): Promise<StorageClass | undefined> => {
  if (name !== undefined) return kube.get(storageClasses, { name });
  const { items } = await kube.list(storageClasses);
  return defaultClassOf(items, forDisks);
};

export const readSnapshotClasses = (kube: KubeClient): Promise<readonly VolumeSnapshotClass[]> =>
  listIfServed(kube, volumeSnapshotClasses);

/** The StorageProfile of a storage class; `undefined` if there is none yet. */
export const readProfile = async (
  kube: KubeClient,
  className: string | undefined,
): Promise<StorageProfile | undefined> =>
  className === undefined ? undefined : kube.get(storageProfiles, { name: className });

/** The snapshot class of its driver that the StorageProfile of a class names. The profile is not read if there is only one class. */
export const readNamedSnapshotClass = async (
  kube: KubeClient,
  fitting: readonly VolumeSnapshotClass[],
  className: string | undefined,
): Promise<string | undefined> => {
  if (fitting.length < 2) return undefined;
  const { spec = {}, status = {} } = (await readProfile(kube, className)) ?? {};
  return [spec.snapshotClass, status.snapshotClass].find((named) =>
    fitting.some(({ metadata }) => metadata.name === named),
  );
};

/** The snapshot class for volumes of a storage class: the one its StorageProfile names, else the usual one of its driver. */
export const readSnapshotClass = async (
  kube: KubeClient,
  driver: string | undefined,
  className: string | undefined,
): Promise<string | undefined> => {
  const fitting = (await readSnapshotClasses(kube)).filter((candidate) => candidate.driver === driver);
  const choice = chooseSnapshotClass(fitting, driver, await readNamedSnapshotClass(kube, fitting, className));
  return choice.is === 'found' ? choice.name : undefined;
};

/**
 * Warning events that explain a wait: a full pool, a quota, a volume that cannot be attached. Only events about the current state of a child
 * count: one that has ended, or is bound, waits for nothing.
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

/** A pod of an earlier attempt, a bound claim, a finished Job. */
const isSettled = ({ status = {} }: Settling): boolean =>
  ['Succeeded', 'Failed', 'Bound'].includes(status.phase ?? '') ||
  (status.conditions ?? []).some(({ type, status: is }) => ['Complete', 'Failed'].includes(type) && is === 'True');

/** RFC 3339: start of the current state of a child. Earlier events are about a previous state. */
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

/** The scheduler, for example, sets no `lastTimestamp`. Whole seconds, like most times of Kubernetes. */
const timeOf = ({ lastTimestamp, series, eventTime, metadata }: KubeEvent): number => {
  const text = series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '';
  return Math.floor((Date.parse(text) || 0) / 1000) * 1000;
};

// Jobs that read the volume of an image: for a download, or into a backup target. The volume is not deleted while they exist, so they are
// removed with it. Called when an image is removed or restarted.

const modes = ['serve', 'backup'] as const;

export const readReaders = async (kube: KubeClient, owner: ObjectRef): Promise<readonly Job[]> => {
  const found = await Promise.all(modes.map((mode) => readOwn(kube, jobs, owner, transferJobName(mode, owner))));
  return found.flatMap(({ own }) => own ?? []);
};
