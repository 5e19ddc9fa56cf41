// No volume yet: find out how large the disk is, where the user did not say, and make the volume together with the Job that fills it.
import { jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type Action, create, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { noClassStep, restingState, waitingState } from '#shared/populate/state.ts';
import { planInspection, withJob } from '#shared/populate/job/inspecting.ts';
import { buildGoldenVolume, buildImportJob, buildInspectJob } from '#shared/backends/csi/manifests.ts';
import { awaitOffer, keepSpool } from '#shared/populate/job/spooling.ts';
import type { ObservedCsi } from '#shared/backends/csi/observed.ts';
import { planCopy, planShared } from '#shared/backends/csi/sharing.ts';
import { leastBytesOf } from '#shared/populate/storage/profile.ts';
import { volumeBytesFor } from '#shared/populate/population.ts';
import { isSent } from '#shared/populate/source.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Image } from '#shared/backends/image.ts';

export const planVolume = (image: Image, observed: ObservedCsi, context: PlanContext): Plan => {
  if (observed.importJob !== undefined) return planRefill(image, observed, context);
  if (observed.isClassUnread === true) return planInspected(image, observed, context);
  if (observed.origin?.is === 'waiting') return { actions: [], state: restingState(image, observed.origin) };
  if (observed.storageClass === undefined) return planNoClass(image, context);
  if (observed.origin !== undefined)
    return planCopy(image, { ...observed, storageClass: observed.storageClass }, observed.origin, context);
  return planShared(
    image,
    { ...observed, storageClass: observed.storageClass },
    (leader) => planFetched(leader, observed, context),
    context,
  );
};

const planFetched = (image: Image, observed: ObservedCsi, context: PlanContext): Plan => {
  const asked = image.storage.capacityBytes;
  if (asked !== undefined) return makeVolume(image, observed, { bytes: asked, state: image.state }, context);
  return isSent(image.source) ? planOffered(image, observed, context) : planInspected(image, observed, context);
};

const planOffered = (image: Image, observed: ObservedCsi, context: PlanContext): Plan => {
  const diskBytes = image.offered?.virtualSize;
  return diskBytes === undefined
    ? awaitOffer(image, context)
    : makeVolume(image, observed, { diskBytes, state: image.state }, context);
};

/** The volume went away under the Job: what the Job writes is lost, so both start again. */
const planRefill = (image: Image, observed: ObservedCsi, context: PlanContext): Plan => {
  const step = {
    phase: 'Pending',
    reason: 'VolumeMissing',
    message: 'the volume was removed while it was being filled; starting again',
  } as const;
  const next = { ...image.state, attempts: 0, attemptsFailed: 0, transfer: undefined, progress: 0 };
  return { actions: removeJob(observed.importJob), state: waitingState(image, next, step, context) };
};

const planNoClass = (image: Image, context: PlanContext): Plan => ({
  actions: [],
  state: waitingState(image, image.state, noClassStep(image.storage.className, 'the image'), context),
});

const planInspected = (image: Image, observed: ObservedCsi, context: PlanContext): Plan => {
  const { inspectJob: job, looked, pods, warnings } = observed;
  const build = () => buildInspectJob(image, context.settings);
  const size = planInspection(image, { job, looked, pods, warnings, build }, context);
  if (size.is === 'planned') return size.plan;
  const { diskBytes, inspection: inspected, state } = size;
  return makeVolume(image, observed, { diskBytes, inspected, state }, context);
};

interface Size {
  /** Exactly this volume… */
  readonly bytes?: number;
  /** …or one that this disk fits into. */
  readonly diskBytes?: number;
  readonly inspected?: Inspection;
  readonly state: ImageState;
}

const makeVolume = (image: Image, observed: ObservedCsi, size: Size, context: PlanContext): Plan => {
  const { storageClass, profile, singleflight } = observed;
  const { filesystemOverhead } = context.settings;
  const least = leastBytesOf(storageClass, profile);
  const volume = buildGoldenVolume(image, {
    storageClass,
    profile,
    bytes: (mode) => size.bytes ?? Math.max(least, volumeBytesFor(size.diskBytes ?? 0, mode, filesystemOverhead)),
    inspected: size.inspected,
    content: singleflight?.name,
  });
  const job = buildImportJob(image, volume, context.settings);
  const kept = keepSpool(image, { spool: observed.spool, target: volume, fileBytes: image.offered?.size }, context);
  const actions: readonly Action[] = [create(persistentVolumeClaims, volume), ...kept, create(jobs, job)];
  const step = { phase: 'Pending', reason: 'Starting', message: 'the transfer is being started' } as const;
  const next = withJob(size.state, { job: job.metadata.name, volume: volume.metadata.name });
  const storageClassName = storageClass?.metadata.name;
  return { actions, state: waitingState(image, { ...next, storageClassName }, step, context) };
};
