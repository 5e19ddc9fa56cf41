// Plans of the cdi backend: determine the size, create the DataVolume, observe it, restart. Pure.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import {
  type ConfigMap,
  type Job,
  type PersistentVolumeClaim,
  type StorageClass,
  configMaps,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { labels as names } from '#shared/api/names.ts';
import { childMetadata } from '#shared/api/object.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import {
  type Action,
  create,
  ensure,
  patch,
  remove,
  removeJob,
  type Plan,
  type PlanContext,
} from '#shared/populate/actions.ts';
import { counted, followDataVolume, stoppedState } from '#shared/backends/cdi/following.ts';
import { type Shape, buildBundle, buildDataVolume, needsStage } from '#shared/backends/cdi/manifests.ts';
import type { ObservedCdi } from '#shared/backends/cdi/observed.ts';
import { dirtyStage, planStage, readyStage, removeStage, stagedDisk } from '#shared/backends/cdi/staging.ts';
import { awaitOffer } from '#shared/populate/job/spooling.ts';
import { markExported } from '#shared/backends/source-claim.ts';
import { type ImageState, isRetryDue } from '#shared/populate/filled.ts';
import { diskBytesOf } from '#shared/populate/clone/origin.ts';
import { planInspection, withJob } from '#shared/populate/job/inspecting.ts';
import { lostState } from '#shared/populate/loss.ts';
import { isLeaving } from '#shared/populate/watched-child.ts';
import {
  describeChild,
  noClassStep,
  restartedState,
  restartingState,
  restingState,
  takenState,
  terminatingState,
  unchanged,
  usableState,
  waitingState,
  leavingState,
} from '#shared/populate/state.ts';
import { inClass } from '#shared/populate/storage/profile.ts';
import { isFetched, isForJob, isSent } from '#shared/populate/source.ts';
import { populationOf, volumeModeOf } from '#shared/populate/population.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Image } from '#shared/backends/backend.ts';

export const initialize = (image: Image, observed: ObservedCdi, context: PlanContext): Plan => {
  if (image.state.phase !== 'Available' && isRetryDue(image)) return planRestart(image, observed, context);
  return image.state.phase === 'Failed' ? unchanged(image) : advance(image, observed, context);
};

const wait = (image: Image, reason: string, message: string, context: PlanContext): Plan => ({
  actions: [],
  state: waitingState(image, image.state, { phase: 'Pending', reason, message }, context),
});

const advance = (image: Image, observed: ObservedCdi, context: PlanContext): Plan => {
  const [taken] = observed.foreign;
  if (taken !== undefined) return { actions: [], state: takenState(image, taken, context) };
  const { dataVolume, claim } = observed;
  if (image.state.phase === 'Available' && isLost(dataVolume, claim)) return planLost(image);
  if (dataVolume !== undefined) return planMade(image, { ...observed, dataVolume }, context);
  const stopped = stoppedState(image);
  return stopped === undefined ? planNew(image, observed, context) : { actions: [], state: stopped };
};

const planMade = (
  image: Image,
  observed: ObservedCdi & { readonly dataVolume: DataVolume },
  context: PlanContext,
): Plan => {
  const { dataVolume, claim } = observed;
  const stopped = isLeaving(dataVolume) ? stoppedState(image) : undefined;
  if (stopped !== undefined) return { actions: [], state: stopped };
  if (isLeaving(dataVolume)) return { actions: [], state: leavingState(image, dataVolume, context) };
  if (claim !== undefined && isFilled(dataVolume, claim)) {
    const state = madeState({ ...image, state: counted(image, dataVolume, context) }, claim);
    return { actions: [...adoption(image, dataVolume), ...removeStage(observed.stage)], state };
  }
  return image.state.phase === 'Available' ? unchanged(image) : followDataVolume(image, observed, context);
};

/** What Harvester's controller left lacks our labels, and would not be watched. */
const adoption = (image: Image, dataVolume: DataVolume): readonly Action[] => {
  if (dataVolume.metadata.labels?.[names.ownerUid] !== undefined) return [];
  const { labels, annotations } = childMetadata(image.ref, 'volume', dataVolume.metadata.name);
  return [patch(dataVolumeKind.type, dataVolume, { metadata: { labels, annotations } })];
};

const isFilled = (dataVolume: DataVolume | undefined, claim: PersistentVolumeClaim | undefined): boolean =>
  dataVolume?.status?.phase === 'Succeeded' && claim?.status?.phase === 'Bound';

/** The content of a usable image is gone, being deleted, or reported as lost. A new DataVolume could have other content. */
const isLost = (dataVolume: DataVolume | undefined, claim: PersistentVolumeClaim | undefined): boolean =>
  dataVolume === undefined ||
  isLeaving(dataVolume) ||
  dataVolume.status?.phase === 'Failed' ||
  claim === undefined ||
  isLeaving(claim) ||
  claim.status?.phase === 'Lost';

const planLost = (image: Image): Plan => ({
  actions: [],
  state: lostState(image, `the golden volume ${image.ref.name}`, image.source),
});

const planNew = (image: Image, observed: ObservedCdi, context: PlanContext): Plan => {
  const { storageClass, cloned, claim, exported } = observed;
  if (claim !== undefined) {
    return wait(
      image,
      'ChildDeleted',
      `claim ${claim.metadata.name} of a deleted DataVolume is being deleted, too`,
      context,
    );
  }
  if (observed.isClassUnread === true) return planLook(image, observed, context);
  if (storageClass === undefined) return planNoClass(image, context);
  if (needsStage(image)) return planRestored(image, observed, storageClass, context);
  if (cloned?.is === 'waiting')
    return { actions: [], state: restingState(image, { reason: 'SourceNotReady', message: cloned.message }) };
  const { source, storage } = image;
  if (isSent(source)) return planOffered(image, storageClass, context);
  if (storage.capacityBytes !== undefined || !isFetched(source)) {
    return makeDataVolume(
      image,
      { storageClass, cloned, exported, diskBytes: storage.capacityBytes },
      image.state,
      context,
    );
  }
  return planLook(image, observed, context);
};

/** An unknown size is determined first. */
const planLook = (image: Image, observed: ObservedCdi, context: PlanContext): Plan => {
  const { storageClass, inspectJob: job, looked, pods } = observed;
  const size = planInspection(image, { job, looked, pods, build: () => buildLook(image, context) }, context);
  if (size.is === 'planned') return size.plan;
  const { diskBytes, inspection: inspected, state } = size;
  if (storageClass === undefined) return planNoClass({ ...image, state }, context);
  return makeDataVolume(image, { storageClass, diskBytes, inspected }, state, context);
};

const buildLook = ({ ref, source, retries, faults }: Image, { settings }: PlanContext): Job => {
  if (!isForJob(source)) throw new InvalidInput(`nothing can be fetched for ${ref.name}`, faults);
  return buildTransferJob({ mode: 'inspect', owner: ref, source, retries }, settings);
};

const planOffered = (image: Image, storageClass: StorageClass, context: PlanContext): Plan => {
  const { storage, offered: inspected, state } = image;
  const diskBytes = storage.capacityBytes ?? inspected?.virtualSize;
  return diskBytes === undefined
    ? awaitOffer(image, context)
    : makeDataVolume(image, { storageClass, diskBytes, inspected }, state, context);
};

const planRestored = (image: Image, observed: ObservedCdi, storageClass: StorageClass, context: PlanContext): Plan => {
  const cloned = readyStage(image, observed);
  return cloned === undefined
    ? planStage(image, observed, inClass(context, storageClass))
    : makeDataVolume(image, { storageClass, cloned, inspected: stagedDisk(observed) }, image.state, context);
};

const planNoClass = (image: Image, context: PlanContext): Plan => ({
  actions: [],
  state: waitingState(image, image.state, noClassStep(image.storage.className, 'the image'), context),
});

const makeDataVolume = (image: Image, shape: Shape, state: ImageState, context: PlanContext): Plan => {
  const bundle = bundleFor(image, context);
  const dataVolume = buildDataVolume(image, { ...shape, bundleName: bundle?.metadata.name });
  const { name } = dataVolume.metadata;
  const next = { ...withJob(state, { volume: name }), storageClassName: shape.storageClass.metadata.name };
  const step = { phase: 'Pending', reason: 'Starting', message: `DataVolume ${name} is being created` } as const;
  const actions = [
    ...(bundle === undefined ? [] : [ensure(configMaps, bundle)]),
    ...markExported(shape.exported, image),
    create(dataVolumeKind.type, dataVolume),
  ];
  return { actions, state: waitingState(image, next, step, context) };
};

const bundleFor = (image: Image, { settings: { additionalCa } }: PlanContext): ConfigMap | undefined =>
  additionalCa === undefined || image.source?.type !== 'http' || image.source.bundleName !== undefined
    ? undefined
    : buildBundle(image, additionalCa);

/** Sizes and digests, if known: our own DataVolumes record them on the claim. */
export const madeState = (image: Image, claim: PersistentVolumeClaim): ImageState =>
  usableState(image, {
    ...image.state,
    inspection: inspectionOf(image, claim),
    digests: populationOf(claim)?.digests ?? image.state.digests,
    servedFrom: populationOf(claim)?.servedFrom ?? image.state.servedFrom,
    storageClassName: claim.spec.storageClassName ?? image.state.storageClassName,
    children: { ...image.state.children, volume: claim.metadata.name },
    lastFailure: undefined,
  });

/** A guest's device is as large as the guest sees it, whatever its original image was; the size of a file is known to the one who copied it. */
const exportedBytes = ({ source }: Image, claim: PersistentVolumeClaim, capacity: number | undefined) => {
  if (source?.type !== 'export-from-volume' || capacity === undefined) return undefined;
  const known = volumeModeOf(claim) === 'Block' ? undefined : populationOf(claim)?.inspection.virtualSize;
  return known ?? diskBytesOf(claim, populationOf(claim), capacity);
};

const inspectionOf = (image: Image, claim: PersistentVolumeClaim): Inspection => {
  const { state } = image;
  const raw: Inspection = { format: 'raw', compression: 'none' };
  const found = populationOf(claim)?.inspection ?? state.inspection ?? raw;
  const capacity = parseQuantity(claim.status?.capacity?.['storage']);
  const virtualSize =
    exportedBytes(image, claim, capacity) ?? found.virtualSize ?? state.inspection?.virtualSize ?? capacity;
  return { ...state.inspection, ...found, ...(virtualSize === undefined ? {} : { virtualSize }) };
};

const childrenOf = ({ dataVolume, claim, inspectJob, readers = [], pods, stage }: ObservedCdi) =>
  [dataVolume, claim, inspectJob, ...readers, ...pods, stage?.importJob, stage?.volume].filter(
    (child) => child !== undefined,
  );

/** The DataVolume is removed before its claim, because it would create it again. */
const removeAll = ({ dataVolume, claim, inspectJob, readers = [], stage }: ObservedCdi) => [
  ...remove(dataVolumeKind.type, dataVolume),
  ...removeJob(inspectJob),
  ...readers.flatMap(removeJob),
  ...(dataVolume === undefined ? remove(persistentVolumeClaims, claim) : []),
  ...removeStage(stage),
];

const planRestart = (image: Image, observed: ObservedCdi, context: PlanContext): Plan => {
  const isStaged = readyStage(image, observed) !== undefined;
  const dirty = { ...observed, stage: dirtyStage(observed), pods: isStaged ? [] : observed.pods };
  const left = childrenOf(dirty);
  if (isFilled(observed.dataVolume, observed.claim) || left.length === 0)
    return advance({ ...image, state: restartedState(image) }, observed, context);
  return { actions: removeAll(dirty), state: restartingState(image, left, context) };
};

export const planDelete = (image: Image, observed: ObservedCdi): Plan & { readonly removed: boolean } => {
  const left = childrenOf(observed);
  const message = left.length === 0 ? 'removed' : `waiting for ${left.map(describeChild).join(', ')} to go`;
  const state = terminatingState(image.state, 'Terminating', message);
  return { actions: removeAll(observed), state, removed: left.length === 0 };
};
