// A volume that starts as a copy of another one of its namespace: its size, its modes, and its claim.
import {
  type StorageClass,
  type VolumeMode,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { type Action, patch, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { planCloning } from '#shared/populate/clone/plan.ts';
import { planInspection } from '#shared/populate/job/inspecting.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { failedState } from '#shared/populate/state.ts';
import { type CloneRecord, recordAnnotation } from '#shared/populate/clone/strategy.ts';
import { type CloneTarget, chooseClone } from '#shared/populate/clone/strategy.ts';
import { type ClaimProfile, cloneStrategyOf } from '#shared/populate/storage/profile.ts';
import { volumeBytesFor } from '#shared/populate/population.ts';
import { contentMark, type Volume } from '#shared/populate/volume/volume.ts';
import { atLeast, buildClaim, buildLookJob, bytesFor, makeClaim, modesFor } from '#shared/populate/volume/making.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import { filledBy, needsPrime } from '#shared/populate/volume/prime.ts';
import { rest, fetchedFor } from '#shared/populate/volume/state.ts';
import { type ObservedSingleflight, decideSingleflight } from '#shared/populate/singleflight/singleflight.ts';
import { holdKept } from '#shared/populate/singleflight/singleflight.ts';
import { requestedBytes, volumeModeOf } from '#shared/populate/population.ts';

export type ObservedVolumeClone = ObservedVolume & {
  readonly origin: ReadyOrigin;
  readonly storageClass: StorageClass;
};

type Target = CloneTarget & ClaimProfile;

/** The size of its source, or of the disk in it if the new volume mode needs another size: a file system needs space for itself. */
export const sizeLike = (clone: ReadyOrigin['clone'], volumeMode: VolumeMode, { settings }: PlanContext): number =>
  volumeMode === clone.volumeMode
    ? clone.bytes
    : volumeBytesFor(clone.diskBytes, volumeMode, settings.filesystemOverhead);

/** `obstacle`: why the storage must not clone by itself. */
export const targetFor = (
  volume: Volume,
  observed: ObservedVolumeClone,
  context: PlanContext,
  obstacle: string | undefined,
): Target => {
  const { storageClass } = observed;
  const { clone, accessModes } = observed.origin;
  const modes = modesFor(volume, observed, { volumeMode: clone.volumeMode, ...(accessModes && { accessModes }) });
  const asked = bytesFor(volume, modes.volumeMode, context) ?? sizeLike(clone, modes.volumeMode, context);
  return {
    storageClass,
    ...modes,
    holdsFiles: volume.source?.type === 'object' ? volume.holdsFiles : undefined,
    bytes: atLeast(asked, volume, observed),
    strategy: cloneStrategyOf(storageClass, observed.profile?.spec),
    overhead: context.settings.filesystemOverhead,
    obstacle,
  };
};

/** Why it cannot be copied from this source now; `undefined`: it can. */
export const cloneObstacle = (
  volume: Volume,
  observed: ObservedVolumeClone,
  context: PlanContext,
  obstacle?: string,
): string | undefined => {
  const choice = chooseClone(observed.origin.clone, targetFor(volume, observed, context, obstacle));
  return choice.is === 'chosen' ? undefined : choice.message;
};

/** Needed only if the volume mode changes, or if the volume could be too small for the largest possible disk. */
const needsLook = (volume: Volume, observed: ObservedVolumeClone, context: PlanContext): boolean => {
  const { clone } = observed.origin;
  if (clone.mayHaveGrown !== true || clone.inUseBy !== undefined) return false;
  const target = targetFor(volume, observed, context, undefined);
  return bytesFor(volume, target.volumeMode, context) === undefined
    ? target.volumeMode !== clone.volumeMode
    : chooseClone(clone, target).is === 'refused';
};

/** Inspects the source for the current size of its disk, which may have grown since it was written. */
const observeSource = (
  volume: Volume,
  observed: ObservedVolumeClone,
  context: PlanContext,
): { readonly is: 'planned'; readonly plan: Plan } | { readonly is: 'known'; readonly origin: ReadyOrigin } => {
  const { origin, inspectJob: job, pods, warnings } = observed;
  const claimName = origin.claim?.metadata.name;
  if (claimName === undefined || !needsLook(volume, observed, context)) return { is: 'known', origin };
  const at = { type: 'claim', claimName, volumeMode: 'Filesystem' } as const;
  const build = () => buildLookJob(volume, context.settings, at);
  const looked = planInspection(volume, { job, pods, warnings, build }, context);
  if (looked.is === 'planned') return looked;
  const { diskBytes, inspection } = looked;
  const population = { inspection, digests: {} };
  return { is: 'known', origin: { ...origin, clone: { ...origin.clone, diskBytes }, population } };
};

interface Manner {
  /** Why the storage must not clone by itself. */
  readonly obstacle?: string | undefined;
  /** It was not requested as a clone: another volume holds the same bytes. */
  readonly isShared?: boolean;
}

/** The inspection pod would keep its source from being deleted. */
export const planClone = (
  volume: Volume,
  observed: ObservedVolumeClone,
  context: PlanContext,
  manner: Manner = {},
): Plan => {
  const looked = observeSource(volume, observed, context);
  if (looked.is === 'planned') return looked.plan;
  const plan = planLookedAt(volume, { ...observed, origin: looked.origin }, context, manner);
  const isMade = plan.actions.some((action) => action.do === 'create' && action.type === persistentVolumeClaims);
  const isOver = isMade || plan.state.phase === 'Failed';
  return isOver ? { ...plan, actions: [...removeJob(observed.inspectJob), ...plan.actions] } : plan;
};

const planLookedAt = (volume: Volume, observed: ObservedVolumeClone, context: PlanContext, manner: Manner): Plan => {
  const target = targetFor(volume, observed, context, manner.obstacle);
  const cloning = planCloning(volume, observed, target, context);
  switch (cloning.is) {
    case 'refused':
      return { actions: [], state: failedState(volume.state, cloning.reason, cloning.message) };
    case 'waiting':
      return rest(volume, cloning);
    case 'planned':
      return cloning.plan;
    case 'chosen':
      return makeClone(volume, observed, { ...cloning, ...manner, target, context });
  }
};

interface Decided extends Manner {
  readonly record: CloneRecord;
  readonly dataSource: Parameters<typeof buildClaim>[1]['dataSource'];
  readonly touched: readonly Action[];
  readonly target: Target;
  readonly context: PlanContext;
}

const makeClone = (
  volume: Volume,
  observed: ObservedVolumeClone,
  { record, dataSource, touched, target, context, isShared = false }: Decided,
): Plan => {
  const { storageClass, profile, origin } = observed;
  const claim = buildClaim(volume, {
    className: storageClass.metadata.name,
    volumeMode: target.volumeMode,
    bytes: target.bytes,
    accessModes: target.accessModes,
    content: contentMark(volume, observed),
    record,
    dataSource,
    filledBy: record.strategy === 'copy' && needsPrime(volume, observed) ? filledBy(volume) : undefined,
    profile,
  });
  const message = `${isShared ? 'reusing a volume with the same bytes: ' : ''}copying ${origin.clone.what} (${record.because})`;
  const copying = { reason: isShared ? 'SharedContent' : 'Cloning', message };
  const plan = makeClaim(volume, { claim, storageClass, record, copying }, context);
  return { ...plan, actions: [...touched, ...plan.actions] };
};

// A volume whose place its consumer chose, and which was therefore created empty: it is copied from a volume with the same bytes, or waits for
// the fetcher, or fetches them for all. Pure; called by filling.ts.

type Late = ObservedVolume & {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass;
  readonly singleflight: ObservedSingleflight;
};

/** Starts the Job that fills the claim. */
type Start = (volume: Volume, claim: PersistentVolumeClaim, context: PlanContext) => Plan;

const obstacle = 'the volume was provisioned for its consumer before its bytes were available';

type Copied = Late & { readonly origin: ReadyOrigin };

/** The volume as it was created. */
const targetOf = (volume: Volume, observed: Copied, context: PlanContext): CloneTarget => ({
  ...targetFor(volume, observed, context, obstacle),
  volumeMode: volumeModeOf(observed.claim),
  bytes: requestedBytes(observed.claim),
});

/** A Job can copy only from a claim. */
const unfitFor =
  (volume: Volume, observed: Late, context: PlanContext) =>
  (origin: ReadyOrigin): string | undefined => {
    if (origin.claim === undefined) return `it is a snapshot alone, and ${obstacle}`;
    if (observed.outOfReach?.has(origin.claim.metadata.name) === true) return 'no node reaches both volumes';
    const choice = chooseClone(origin.clone, targetOf(volume, { ...observed, origin }, context));
    return choice.is === 'chosen' ? undefined : choice.message;
  };

export const planLate = (volume: Volume, observed: Late, start: Start, context: PlanContext): Plan => {
  const { claim, singleflight: found } = observed;
  const singleflight = decideSingleflight(volume.ref, found, unfitFor(volume, observed, context));
  switch (singleflight.is) {
    case 'under way':
      return start(fetchedFor(volume, singleflight.because), claim, context);
    case 'leading': {
      const plan = start(fetchedFor(volume, singleflight.because), claim, context);
      return { ...plan, actions: [...singleflight.actions, ...plan.actions] };
    }
    case 'following':
      return singleflight.origin.is === 'waiting'
        ? { ...rest(fetchedFor(volume, undefined), singleflight.origin), actions: singleflight.actions }
        : planCopied(fetchedFor(volume, undefined), { ...observed, origin: singleflight.origin }, start, context);
  }
};

/** The claim records how it is filled before the Job starts. */
const planCopied = (volume: Volume, observed: Copied, start: Start, context: PlanContext): Plan => {
  const { claim, origin } = observed;
  const cloning = planCloning(volume, { origin }, targetOf(volume, observed, context), context);
  if (cloning.is !== 'chosen') return start(volume, claim, context);
  const { record, touched } = cloning;
  const annotations = recordAnnotation(record);
  const copied = {
    ...claim,
    metadata: { ...claim.metadata, annotations: { ...claim.metadata.annotations, ...annotations } },
  };
  const clone = { strategy: record.strategy, because: record.because };
  const { actions, state } = start({ ...volume, state: { ...volume.state, clone } }, copied, context);
  return {
    actions: [
      ...holdKept(volume.ref, origin),
      ...touched,
      patch(persistentVolumeClaims, claim, { metadata: { annotations } }),
      ...actions,
    ],
    state,
  };
};
