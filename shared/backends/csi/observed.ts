// What the csi backend reads before it decides. Reads come in an order that makes them safe without a common snapshot: a Job is read before
// the volume it fills, since it is made after it and never taken away from a volume that is being filled and stays.
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
import { type VolumeSnapshot, type VolumeSnapshotClass, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { cloneName } from '#shared/backends/cloning.ts';
import { readCopied } from '#shared/backends/csi/copying.ts';
import { contentOf } from '#shared/backends/singleflight/content.ts';
import type { ObservedSingleflight } from '#shared/backends/singleflight/singleflight.ts';
import { readSingleflight } from '#shared/backends/singleflight/read.ts';
import { type Image, isRetryDue } from '#shared/backends/image.ts';
import type { Origin } from '#shared/backends/origin.ts';
import {
  readReaders,
  readClass,
  readClassAndProfile,
  readMarked,
  readNewestWarnings,
  readOwn,
  readWorkers,
  readSnapshotClasses,
  readToldClass,
} from '#shared/backends/reading.ts';
import { isLeaving } from '#shared/backends/watched-child.ts';
import { readSpool } from '#shared/backends/spooling.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type SucceededRun, readSucceeded, readTransfer } from '#shared/populate/attempts.ts';
import { transferJobName } from '#shared/populate/transfer-job.ts';
import { recordOf } from '#shared/populate/clone.ts';
import { isCopied, isSent } from '#shared/populate/source.ts';
import { populationOf, volumeModeOf, provisionerOf } from '#shared/populate/volume.ts';
import { annotations } from '#shared/api/names.ts';

export interface ObservedCsi {
  readonly volume?: PersistentVolumeClaim | undefined;
  readonly snapshot?: VolumeSnapshot | undefined;
  readonly inspectJob?: Job | undefined;
  readonly importJob?: Job | undefined;
  /** Keeps what was uploaded until it is a disk. */
  readonly spool?: PersistentVolumeClaim | undefined;
  /** Taken of the volume that this one is a copy of. */
  readonly sourceSnapshot?: VolumeSnapshot | undefined;
  /** What it is to be a copy of; read only where the volume is to be made. */
  readonly origin?: Origin | undefined;
  /** Who else wants the same bytes; read only where the volume is to be made, and what goes in is known beforehand. */
  readonly singleflight?: ObservedSingleflight | undefined;
  /** Read the volume; looked for only where the image is to be removed or started over. */
  readonly readers?: readonly Job[];
  readonly pods: readonly Pod[];
  /** The class named, or the default one; read only where a volume or a snapshot is to be made. */
  readonly storageClass?: StorageClass | undefined;
  /** What is said of that class. */
  readonly profile?: StorageProfile | undefined;
  /** It was not looked for: how large the disk is comes first, and what is known beforehand of its bytes tells nobody of them. */
  readonly isClassUnread?: true;
  /** What a look at the source found. Its pods are what is read of it. */
  readonly looked?: SucceededRun | undefined;
  /** The snapshot, and all that was read: it is ready, and ends what status says is done but for it. */
  readonly completed?: VolumeSnapshot | undefined;
  /** Read only where a snapshot is to be made; `undefined`: not read. */
  readonly snapshotClasses?: readonly VolumeSnapshotClass[] | undefined;
  /** The class that is to make it, as the class's StorageProfile says. */
  readonly snapshotClass?: string | undefined;
  /** Newest Warning about each child that keeps the image waiting; read only where it has been waiting for a while. */
  readonly warnings?: readonly KubeEvent[] | undefined;
  /** Objects that have our children's names and belong to somebody else. They are never touched. */
  readonly foreign: readonly KubeObject[];
}

const nothing: ObservedCsi = { pods: [], foreign: [] };

export const check = async (kube: KubeClient, image: Image): Promise<ObservedCsi> => {
  if (image.deleting || isRetryDue(image)) return readAll(kube, image);
  if (image.state.phase === 'Failed') return nothing;
  const isFilled = image.state.phase === 'Available' || image.state.phase === 'Snapshotting';
  return isFilled ? readFilled(kube, image) : readFilling(kube, image);
};

type Part = Partial<ObservedCsi>;

const merge = (...parts: readonly Part[]): ObservedCsi => ({
  ...Object.assign({}, nothing, ...parts),
  foreign: parts.flatMap((part) => part.foreign ?? []),
});

/** Everything there is, for removal and for starting over. */
const readAll = async (kube: KubeClient, image: Image): Promise<ObservedCsi> => {
  const [inspect, fill, readers, snapshot, source] = await Promise.all([
    readJob(kube, image, 'inspect'),
    readJob(kube, image, 'import'),
    readReaders(kube, image.ref),
    readSnapshot(kube, image),
    readSourceSnapshot(kube, image),
  ]);
  const [volume, pod, spool] = await Promise.all([
    readVolume(kube, image),
    readPods(kube, image),
    readSpool(kube, image),
  ]);
  const observed = merge(inspect, fill, { readers, spool }, snapshot, source, volume, pod);
  return image.deleting ? observed : merge(observed, await readForRestart(kube, image, observed));
};

const readAnew = async (kube: KubeClient, image: Image): Promise<Part> =>
  isCopied(image.source)
    ? readForCopy(kube, image, await readCopied(kube, image.source))
    : readSharing(kube, image, await readClassAndProfile(kube, image.storage.className));

/** Starting over goes on to its first step in the same pass, once nothing is left. */
const readForRestart = async (kube: KubeClient, image: Image, observed: ObservedCsi): Promise<Part> =>
  populationOf(observed.volume) === undefined ? readAnew(kube, image) : readSnapshotting(kube, image, observed.volume);

/** Whether status says that bytes and sizes are there, and that a snapshot is the last that is waited for. */
const isSnapshotLast = ({ state, trustsStatus }: Image): boolean =>
  trustsStatus === true &&
  state.phase === 'Snapshotting' &&
  state.inspection !== undefined &&
  state.children?.volume !== undefined &&
  state.children.snapshot !== undefined;

/** Golden volume in place: only it and its snapshot matter. */
const readFilled = async (kube: KubeClient, image: Image): Promise<ObservedCsi> => {
  const { snapshot } = isSnapshotLast(image) ? await readSnapshot(kube, image) : {};
  if (snapshot?.status?.readyToUse === true && !isLeaving(snapshot)) return { ...nothing, completed: snapshot };
  const volume = await readVolume(kube, image);
  if (populationOf(volume.volume) === undefined) return merge(volume);
  if (volume.volume !== undefined && isLeaving(volume.volume))
    return merge(volume, await readJob(kube, image, 'import'));
  return merge(volume, await readSnapshotting(kube, image, volume.volume));
};

const readFilling = async (kube: KubeClient, image: Image): Promise<ObservedCsi> => {
  if (!mayBe(image, image.state.children?.volume)) return merge(await readForVolume(kube, image));
  const fill = await readJob(kube, image, 'import');
  const observed = merge(fill, await readVolume(kube, image), { spool: await readSpool(kube, image) });
  if (observed.volume === undefined) return merge(observed, await readForVolume(kube, image));
  const { pods: workers = [] } = observed.importJob === undefined ? {} : await readPods(kube, image);
  const volume = await readMarked(kube, image.ref, { claim: observed.volume, job: observed.importJob, workers });
  const withPods = merge(
    observed,
    { volume, pods: workers },
    recordOf(volume) === undefined ? {} : await readSourceSnapshot(kube, image),
  );
  if (!isFillable(withPods)) return merge(withPods, await readSnapshotting(kube, image, volume));
  return merge(withPods, await readWarnings(kube, image, withPods), await readClassFor(kube, observed));
};

/** How much of a file system is its own depends on its class; of one that a Job fills already the Job knows. */
const readClassFor = async (kube: KubeClient, { volume, importJob }: ObservedCsi): Promise<Part> =>
  importJob !== undefined || volume === undefined || volumeModeOf(volume) === 'Block'
    ? {}
    : { storageClass: await readClass(kube, volume.spec.storageClassName) };

/** Why nothing moves, in the words of those who should move it: a full pool, a quota, a volume that cannot be attached. */
const readWarnings = async (kube: KubeClient, image: Image, observed: ObservedCsi): Promise<Part> => {
  const isWaiting = image.state.phase === 'Pending' && image.state.deadline !== undefined;
  if (!isWaiting) return {};
  const idle = observed.pods.filter(({ status }) => status?.phase === 'Pending');
  const children = [observed.volume, observed.importJob, observed.inspectJob, ...idle].filter(
    (child) => child !== undefined,
  );
  return { warnings: await readNewestWarnings(kube, children) };
};

/** Whether bytes are still missing; otherwise the snapshot comes next. `now` plays no part in whether a transfer succeeded. */
const isFillable = ({ volume, importJob, pods: workers }: ObservedCsi): boolean =>
  populationOf(volume) === undefined &&
  !isCloned(volume) &&
  (importJob === undefined || readTransfer(importJob, workers, 0).is !== 'succeeded');

/** Its storage has copied it. */
const isCloned = (volume: PersistentVolumeClaim | undefined): boolean =>
  volume?.status?.phase === 'Bound' && (recordOf(volume)?.strategy ?? 'copy') !== 'copy';

/** A volume is to be made: of which class, and how large. */
const readForVolume = async (kube: KubeClient, image: Image): Promise<Part> => {
  if (isCopied(image.source)) return readForCopy(kube, image, await readCopied(kube, image.source));
  const isSized = image.storage.capacityBytes !== undefined;
  const mayBeLooking = !isSized && mayBe(image, image.state.children?.job);
  if (!isSized && !mayBeLooking && isLookedAt(image)) return { isClassUnread: true };
  const [described, look] = await Promise.all([
    readClassAndProfile(kube, image.storage.className),
    mayBeLooking ? readLook(kube, image) : nothing,
  ]);
  const observed = merge(look, await readSharing(kube, image, described));
  return merge(observed, look.inspectJob === undefined ? {} : await readWarnings(kube, image, observed));
};

const readForCopy = async (kube: KubeClient, image: Image, origin: Origin): Promise<Part> => {
  if (origin.is === 'waiting') return { origin };
  const described = await readClassAndProfile(kube, image.storage.className ?? origin.className);
  return { origin, ...described, ...(await readSourceSnapshot(kube, image)) };
};

/** A Job looks at its source first, whoever else has the bytes. */
const isLookedAt = (image: Image): boolean => !isSent(image.source) && contentOfImage(image) === undefined;

/** The Job that looks: what it has found is with its pods. */
const readLook = async (kube: KubeClient, image: Image): Promise<Part> => {
  const looked = image.trustsStatus === true ? await readLooked(kube, image) : undefined;
  if (looked !== undefined) return { looked };
  const inspect = await readJob(kube, image, 'inspect');
  return inspect.inspectJob === undefined ? inspect : merge(inspect, await readPods(kube, image));
};

const readLooked = async (kube: KubeClient, image: Image): Promise<SucceededRun | undefined> =>
  readSucceeded(transferJobName('inspect', image.ref), (await readPods(kube, image)).pods ?? []);

const contentOfImage = ({ source, checksum }: Image): string | undefined => contentOf({ from: source, checksum });

const readSharing = async (kube: KubeClient, image: Image, described: Part): Promise<Part> => {
  const content = contentOfImage(image);
  const { storageClass } = described;
  if (content === undefined || storageClass === undefined) return described;
  const singleflight = await readSingleflight(kube, image.ref, { content, className: storageClass.metadata.name });
  return { ...described, singleflight, ...(await readSourceSnapshot(kube, image)) };
};

/** Nobody but an image that says what it is to hold, or to be a copy of, can be one. */
const readSourceSnapshot = async (kube: KubeClient, image: Image): Promise<Part> => {
  if (contentOfImage(image) === undefined && !isCopied(image.source)) return {};
  const { own } = await readOwn(kube, volumeSnapshots, image.ref, cloneName(image));
  return { sourceSnapshot: own };
};

const readVolume = async (kube: KubeClient, image: Image): Promise<Part> => {
  const { own, foreign } = await readOwn(kube, persistentVolumeClaims, image.ref, image.childNames.volume);
  return { volume: own, foreign };
};

const jobFields = { inspect: 'inspectJob', import: 'importJob' } as const;

const readJob = async (kube: KubeClient, image: Image, mode: keyof typeof jobFields): Promise<Part> => {
  const { own, foreign } = await readOwn(kube, jobs, image.ref, transferJobName(mode, image.ref));
  return { [jobFields[mode]]: own, foreign };
};

const readPods = async (kube: KubeClient, image: Image): Promise<Part> => ({
  pods: await readWorkers(kube, image.ref),
});

// What the csi backend reads of the snapshot of a filled volume, and of the classes that could make it.ts.

/** Whether it may be there. */
const mayBe = ({ trustsStatus }: Image, known: string | undefined): boolean =>
  trustsStatus !== true || known !== undefined;

const readSnapshot = async (kube: KubeClient, image: Image): Promise<Part> => {
  const { own, foreign } = await readOwn(kube, volumeSnapshots, image.ref, image.childNames.snapshot);
  return { snapshot: own, foreign };
};

const readSnapshotting = async (
  kube: KubeClient,
  image: Image,
  volume: PersistentVolumeClaim | undefined,
): Promise<Part> => {
  const snapshot = mayBe(image, image.state.children?.snapshot) ? await readSnapshot(kube, image) : {};
  if (snapshot.snapshot !== undefined || volume === undefined) return snapshot;
  const marked = markedClass(image, volume);
  if (marked !== undefined) return { ...snapshot, snapshotClass: marked };
  const { storageClassName: className } = volume.spec;
  const [storageClass, snapshotClasses] = await Promise.all([
    provisionerOf(volume) === undefined ? readClass(kube, className) : undefined,
    readSnapshotClasses(kube),
  ]);
  const driver = provisionerOf(volume) ?? storageClass?.provisioner;
  const fitting = snapshotClasses.filter((candidate) => candidate.driver === driver);
  const snapshotClass =
    image.storage.snapshotClassName === undefined ? await readToldClass(kube, fitting, className) : undefined;
  return { ...snapshot, storageClass, snapshotClasses, snapshotClass };
};

/** Told when the volume was made; looked for anew where that came to nothing. */
const markedClass = ({ storage, trustsStatus }: Image, { metadata }: PersistentVolumeClaim): string | undefined =>
  trustsStatus === true && storage.snapshotClassName === undefined
    ? metadata.annotations?.[annotations.snapshotClass]
    : undefined;
