// What must never happen to an image, checked at every change as a client would observe it, and what must hold in the final state.
import { jobs, persistentVolumeClaims, pods, storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { finalizers } from '#shared/api/names.ts';
import { type KubeObject, ownerOf } from '#shared/api/object.ts';
import { populationOf } from '#shared/populate/population.ts';
import { isFinished } from '#shared/populate/job/attempts.ts';
import type { ImageObject } from '#shared/resources/dialect.ts';
import type { Change } from '#test/support/memory-kube.ts';
import { type World, imageIn } from '#test/support/simulation/world.ts';

type Report = (text: string) => void;

/** Kinds whose volume is populated. */
const filledKinds = ['VirtualMachineImage', 'VirtualMachinePvc', 'VirtualMachineVolume', 'DataVolume'];

const exportKind = 'VirtualMachineVolumeExport';

/** The common part of the status, which each kind stores differently. */
const commonOf = ({ status }: ImageObject): ImageObject['status'] => {
  const { detail, conditions } = (status ?? {}) as { readonly detail?: ImageObject['status'] } & NonNullable<
    ImageObject['status']
  >;
  return detail === undefined ? status : { ...detail, conditions };
};
type Status = NonNullable<ImageObject['status']>;

/** A listener for every change. */
export const watchInvariants = (world: World, report: Report) => {
  const known = new Map<string, Status>();
  return ({ type, object }: Change): void => {
    if (type === 'DELETED') return;
    if (object.kind === exportKind) checkExported(world, object as ImageObject, report);
    if (!filledKinds.includes(object.kind)) {
      if (type === 'ADDED') checkHeld(world, object, report);
      return;
    }
    const status = commonOf(object as ImageObject);
    if (status === undefined) return;
    const before = known.get(object.metadata.uid!);
    checkReady(world, { ...object, status }, report);
    if (before !== undefined) checkForward(before, status, report);
    known.set(object.metadata.uid!, status);
  };
};

const conditionOf = (status: ImageObject['status'], type: string) =>
  status?.conditions?.find((condition) => condition.type === type);

const isReady = (status: ImageObject['status']): boolean => conditionOf(status, 'Ready')?.status === 'True';

const checkReady = (world: World, { metadata, status }: ImageObject, report: Report) => {
  const isComplete = status?.progress === 100 && status.phase !== 'Terminating';
  if (isReady(status) !== isComplete) report(`progress is ${status?.progress} and ready is ${isReady(status)}`);
  if (!isReady(status)) return;
  const isOnLonghorn = status?.children?.backingImage !== undefined;
  if (isOnLonghorn) checkBackingImage(world, status, report);
  else checkVolume(world, metadata.uid, report);
};

const checkVolume = (world: World, uid: string | undefined, report: Report) => {
  const volume = world.kube.all(persistentVolumeClaims).find((claim) => isHeldBy(world, claim, uid));
  const isFilled = volume !== undefined && world.cluster.contents.get(volume.metadata.uid!)?.isFilled === true;
  if (!isFilled) report('ready, but the volume is not filled');
  if (populationOf(volume) === undefined) report('ready, but the volume does not say what it holds');
};

/** A ready image has a ready copy, and the class that disks are created with. */
const checkBackingImage = (world: World, { children, storageClassName }: Status, report: Report) => {
  const image = world.kube.all(backingImages).find(({ metadata }) => metadata.name === children?.backingImage);
  const copies = Object.values(image?.status?.diskFileStatusMap ?? {});
  if (!copies.some(({ state }) => state === 'ready')) report('ready, but no copy of the backing image is');
  const isThere = world.kube.all(storageClasses).some(({ metadata }) => metadata.name === storageClassName);
  if (!isThere) report('ready, but its storage class is not there');
};

/** The object that a completed export reports is in the store, complete, and nothing else is. */
const checkExported = (world: World, { metadata, status }: ImageObject, report: Report) => {
  if (!isReady(status)) return;
  const { parts, objects } = world.cluster.store;
  if (objects.get(metadata.uid!)?.isFilled !== true) report('exported, but the object is not whole');
  if (parts.has(metadata.uid!)) report('exported, but parts are left beside the object');
};

/** Incomplete uploads in the final state. */
export const leftInStore = (world: World): readonly string[] =>
  [...world.cluster.store.parts].map((uid) => `parts of export ${uid} are left in the store`);

const isOwnedBy = ({ metadata }: KubeObject, uid: string | undefined) =>
  metadata.ownerReferences?.some((reference) => reference.uid === uid) === true;

/** By the image itself, or by its DataVolume. */
const isHeldBy = (world: World, claim: KubeObject, uid: string | undefined): boolean =>
  isOwnedBy(claim, uid) ||
  world.kube
    .all()
    .some(
      ({ kind, metadata }) =>
        kind === 'DataVolume' && isOwnedBy(claim, metadata.uid) && isOwnedBy({ metadata } as KubeObject, uid),
    );

const counters = {
  failed: ({ failed = 0 }: Status) => failed,
  progress: ({ progress = 0 }: Status) => progress,
  sequence: ({ transfer }: Status) => transfer?.sequence ?? 0,
} as const;

const checkForward = (before: Status, after: Status, report: Report) => {
  if (isReady(before) && !isReady(after) && after.phase !== 'Terminating') report('was ready, and is no more');
  const names = isSameAttempt(before, after) ? (['failed', 'progress', 'sequence'] as const) : (['failed'] as const);
  for (const name of names) {
    const [was, is] = [counters[name](before), counters[name](after)];
    if (is < was) report(`${name} went from ${was} back to ${is}`);
  }
};

/** A failed attempt leaves nothing, and the next starts with an empty volume. */
const isSameAttempt = (before: Status, after: Status): boolean =>
  (after.phase !== 'Failed' || before.phase === 'Failed') &&
  before.children?.job === after.children?.job &&
  before.attempts === after.attempts &&
  before.failed === after.failed &&
  before.retryHandled === after.retryHandled &&
  before.transfer?.run === after.transfer?.run;

/** No child may be created before its image has the finalizer. */
const checkHeld = (world: World, child: KubeObject, report: Report) => {
  const owner = ownerOf(child);
  // Volumes have no finalizer: their children are deleted by owner reference.
  if (owner === undefined || child.kind === 'Pod' || !owner.groupKind.startsWith('VirtualMachineImage.')) return;
  const image = world.kube.all().find(({ metadata }) => metadata.uid === owner.uid);
  const isHeld = image?.metadata.finalizers?.includes(finalizers.image) === true;
  if (!isHeld)
    report(`${child.kind} ${child.metadata.name} was made for an image that is ${image ? 'not held' : 'gone'}`);
};

/** Orphans in the final state. */
export const orphansIn = (world: World): readonly string[] => {
  const alive = new Set(world.kube.all().map(({ metadata }) => metadata.uid));
  return world.kube
    .all()
    .filter((object) => ownerOf(object) !== undefined && !alive.has(ownerOf(object)?.uid))
    .map(({ kind, metadata }) => `${kind} ${metadata.name} is left without an owner`);
};

/** Final transitions that were not announced, in the final state. */
export const untoldIn = (world: World): readonly string[] => {
  const image = imageIn<ImageObject>(world);
  const phase = image?.status?.phase === 'Imported' ? 'Available' : image?.status?.phase;
  const isFinal = phase === 'Available' || phase === 'Failed';
  return isFinal && !world.announced.includes(`${image?.metadata.uid} ${phase}`) ? [`not announced: ${phase}`] : [];
};

/** What would start after its owner has failed, in the final state. */
export const begunIn = (world: World): readonly string[] => {
  const failed = new Set(
    world.kube.all<ImageObject>().flatMap(({ status, metadata }) => (status?.phase === 'Failed' ? [metadata.uid] : [])),
  );
  return world.kube
    .all(jobs)
    .filter((job) => failed.has(ownerOf(job)?.uid) && job.metadata.deletionTimestamp === undefined && !isFinished(job))
    .map(({ metadata }) => `Job ${metadata.name} is there to run for what has failed`);
};

const withoutUid = (name: string): string => name.replace(/[0-9a-f-]{36}$/, '');

/** A failed image may have failed before its class was created; no disk can be made from it either way. */
const classesOf = (world: World, image: ImageObject | undefined): number | undefined =>
  image?.status?.phase === 'Failed' ? undefined : world.kube.all(storageClasses).length;

/** The parts of the state of an image that must be the same in every run. */
const statusOf = (image: ImageObject | undefined) => {
  const { phase, virtualSize, digests, attemptsFailed } = image?.status ?? {};
  const reason = conditionOf(image?.status, 'Ready')?.reason;
  return { finalizers: image?.metadata.finalizers, reason, phase, virtualSize, digests, attemptsFailed };
};

/** The final state of an image and its children, without times and other differences between runs. */
export const summaryOf = (world: World) => {
  const image = imageIn<ImageObject>(world);
  return {
    ...statusOf(image),
    others: world.kube
      .all<ImageObject>()
      .filter(
        ({ kind, metadata }) => [...filledKinds, exportKind].includes(kind) && metadata.uid !== image?.metadata.uid,
      )
      .toSorted((a, b) => `${a.kind}/${a.metadata.name}`.localeCompare(`${b.kind}/${b.metadata.name}`))
      .map(({ kind, status }) => ({ kind, phase: status?.phase, reason: conditionOf(status, 'Ready')?.reason })),
    volumes: world.kube
      .all(persistentVolumeClaims)
      .map((volume) => ({
        name: withoutUid(volume.metadata.name),
        isPopulated: populationOf(volume) !== undefined,
        writers: world.cluster.contents.get(volume.metadata.uid!)?.writers,
      }))
      .toSorted((a, b) => a.name.localeCompare(b.name)),
    // Contents are named by the UIDs of their snapshots, which differ from run to run.
    snapshots: world.kube.all(volumeSnapshots).map(({ status }) => {
      const { boundVolumeSnapshotContentName: content, ...rest } = status ?? {};
      return { ...rest, isBound: content !== undefined };
    }),
    jobs: world.kube
      .all(jobs)
      .map(({ metadata }) => withoutUid(metadata.name))
      .toSorted((a, b) => a.localeCompare(b)),
    pods: world.kube.all(pods).length,
    backingImages: world.kube.all(backingImages).map(({ spec, status }) => ({ spec, status })),
    classes: classesOf(world, image),
    // The progress of an image that was deleted meanwhile depends on the faults.
    transfers: [...world.cluster.longhorn.begun].flatMap(([uid, count]) =>
      uid === image?.metadata.uid ? [count] : [],
    ),
  };
};
