// A volume without its claim: waits for the source, determines its size, and creates the claim, here or in the namespace of the source.
import { type StorageClass, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { create, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { decideSingleflight } from '#shared/populate/singleflight/singleflight.ts';
import { holdKept } from '#shared/populate/singleflight/singleflight.ts';
import { planInspection } from '#shared/populate/job/inspecting.ts';
import { awaitOffer } from '#shared/populate/job/spooling.ts';
import { isSent } from '#shared/populate/source.ts';
import type { ClaimProfile } from '#shared/populate/storage/profile.ts';
import { planClone, cloneObstacle } from '#shared/populate/volume/cloning.ts';
import { bytesOf, contentMark, isVersion } from '#shared/populate/volume/volume.ts';
import { planElsewhere, stageObstacleOf } from '#shared/populate/volume/elsewhere.ts';
import { throughCopy } from '#shared/populate/volume/golden-copy-use.ts';
import { buildLookJob } from '#shared/populate/volume/making.ts';
import { atLeast, buildClaim, bytesFor, makeClaim, modesFor, openModes } from '#shared/populate/volume/making.ts';
import { type ObservedVolume, isSizeOpen, needsInspection } from '#shared/populate/volume/observed.ts';
import { filledBy, needsPrime } from '#shared/populate/volume/prime.ts';
import { fetchedFor, noClass, rest, unplaced } from '#shared/populate/volume/state.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import type { Inspection } from '#shared/transfer/report.ts';

/** Bytes that another volume already fetches are cloned from it; otherwise this volume is recorded as the fetcher before anything is created. */
export const planClaim = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan => {
  const { singleflight: found, storageClass } = observed;
  if (observed.isClassUnread === true) return planEmpty(volume, observed, context);
  const open =
    storageClass === undefined ? undefined : openModes(volume, { ...observed, storageClass }, sourceModes(observed));
  if (open !== undefined) return rest(volume, { reason: 'ErrClaimNotValid', message: open });
  if (found === undefined || storageClass === undefined) return planFrom(volume, observed, context);
  const obstacle = obstacleOf(volume, storageClass);
  const singleflight = decideSingleflight(volume.ref, found, (origin) =>
    cloneObstacle(volume, { ...observed, origin, storageClass }, context, obstacle),
  );
  switch (singleflight.is) {
    case 'under way':
      return planFrom(fetchedFor(volume, singleflight.because), observed, context);
    case 'leading': {
      const plan = planFrom(fetchedFor(volume, singleflight.because), observed, context);
      return { ...plan, actions: [...singleflight.actions, ...plan.actions] };
    }
    case 'following': {
      const { origin } = singleflight;
      const shared = fetchedFor(volume, undefined);
      if (origin.is === 'waiting') return { ...rest(shared, origin), actions: singleflight.actions };
      const copied = { ...observed, origin, storageClass };
      const { actions, state } = planClone(shared, copied, context, { obstacle, isShared: true });
      return { actions: actions.length === 0 ? [] : [...holdKept(volume.ref, origin), ...actions], state };
    }
  }
};

const sourceModes = ({ origin, stage }: ObservedVolume): Partial<ClaimProfile> => {
  if (origin?.is !== 'ready') return stage?.claim?.spec ?? {};
  const { clone, accessModes } = origin;
  return { volumeMode: clone.volumeMode, ...(accessModes === undefined ? {} : { accessModes }) };
};

/** A WaitForFirstConsumer class needs a pod, and no pod uses a golden volume: a Job provides one. */
const obstacleOf = ({ isBoundAtOnce }: Volume, { metadata, volumeBindingMode }: StorageClass): string | undefined =>
  isBoundAtOnce === true && volumeBindingMode === 'WaitForFirstConsumer'
    ? `class ${metadata.name} waits for a pod, and no pod uses the volume yet`
    : undefined;

/** Through the copy of its source in its class, where that lets the storage clone it. */
const planFrom = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan => {
  const { origin, storageClass, goldenCopy, stage } = observed;
  if (goldenCopy === undefined || origin?.is !== 'ready' || storageClass === undefined)
    return planDirectly(volume, observed, context);
  const obstacle = stage === undefined ? obstacleOf(volume, storageClass) : stageObstacleOf(observed);
  const through = throughCopy(volume, { ...observed, goldenCopy, origin, storageClass }, context, obstacle);
  switch (through.is) {
    case 'direct':
      return planDirectly(volume, observed, context);
    case 'planned':
      return through.plan;
    case 'copied': {
      const { actions, state } = planDirectly(through.volume, { ...observed, origin: through.origin }, context);
      return { actions: actions.length === 0 ? [] : [...through.used, ...actions], state };
    }
  }
};

const planDirectly = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan => {
  const { origin, storageClass, stage } = observed;
  if (stage !== undefined) return planElsewhere(volume, { ...observed, stage }, context);
  if (origin?.is === 'waiting') return rest(volume, origin);
  if (storageClass === undefined) return planUnplaced(volume, observed, context);
  if (origin === undefined) return planEmpty(volume, observed, context);
  // A snapshot without its claim can only be restored, which waits.
  const obstacle = origin.clone.hasClaim ? obstacleOf(volume, storageClass) : undefined;
  return planClone(volume, { ...observed, origin, storageClass }, context, { obstacle });
};

/**
 * A version of a cron waits for a class without a deadline, with a claim that administrators see. The claim is created again once there is a
 * class.
 */
const planUnplaced = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan => {
  const { origin } = observed;
  const sourceClass = origin?.is === 'ready' ? origin.className : undefined;
  const plan = noClass(volume, sourceClass, context);
  const isNamed = (volume.claim.className ?? sourceClass) !== undefined;
  const modes = modesFor(volume, { profile: observed.profile });
  const bytes = bytesFor(volume, modes.volumeMode, context);
  if (isNamed || origin !== undefined || bytes === undefined || !isVersion(volume)) return plan;
  const claim = buildClaim(volume, { className: undefined, ...modes, bytes });
  return { actions: [create(persistentVolumeClaims, claim)], state: rest(volume, unplaced).state };
};

/** A claim that a Job fills from a source of bytes: the size of the disk is determined first, if it is unknown. */
const planEmpty = (volume: Volume, observed: ObservedVolume, context: PlanContext): Plan => {
  if (isSizeOpen(volume) && isSent(bytesOf(volume))) return awaitOffer(volume, context);
  if (!needsInspection(volume)) return makeEmpty(volume, observed, {}, context);
  const { inspectJob: job, looked: found, pods, warnings } = observed;
  const build = () => buildLookJob(volume, context.settings);
  const looked = planInspection(volume, { job, looked: found, pods, warnings, build }, context);
  if (looked.is === 'planned') return looked.plan;
  const { diskBytes, inspection, state } = looked;
  const sized = { ...volume, state, claim: { ...volume.claim, diskBytes } };
  return makeEmpty(sized, observed, { inspected: inspection }, context);
};

const makeEmpty = (
  volume: Volume,
  observed: ObservedVolume,
  { inspected }: { readonly inspected?: Inspection },
  context: PlanContext,
): Plan => {
  const { storageClass, profile } = observed;
  if (storageClass === undefined) return noClass(volume, undefined, context);
  const { volumeMode, accessModes } = modesFor(volume, observed);
  const claim = buildClaim(volume, {
    className: storageClass.metadata.name,
    volumeMode,
    accessModes,
    bytes: atLeast(bytesFor(volume, volumeMode, context) ?? 0, volume, observed),
    inspected,
    profile,
    content: contentMark(volume, observed),
    filledBy: needsPrime(volume, observed) ? filledBy(volume) : undefined,
  });
  return makeClaim(volume, { claim, storageClass, spool: observed.spool }, context);
};
