// Whether a disk is cloned from a golden copy (golden-copy.ts), waits for one, or is copied by a Job of its own. Pure; called by claim.ts, and by the tick,
// which makes copies ahead.
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import { ownerOf } from '#shared/api/object.ts';
import { type Action, type Plan, type PlanContext, ensure, patch } from '#shared/populate/actions.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { isUseDue, touch, useMark } from '#shared/populate/clone/plan.ts';
import { type CloneStrategy, type CloneTarget, chooseClone } from '#shared/populate/clone/strategy.ts';
import { cloneStrategyOf, leastBytesOf } from '#shared/populate/storage/profile.ts';
import { type ObservedVolumeClone, sizeLike, targetFor } from '#shared/populate/volume/cloning.ts';
import {
  buildCopy,
  type Copying,
  type CopyRecord,
  isStuck,
  type ObservedCopy,
} from '#shared/populate/volume/golden-copy.ts';
import { rest } from '#shared/populate/volume/state.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';

/**
 * A key for each volume is found by its name, and the volume of another disk would not have it. A volume in the class of an image begins with that image,
 * which may be another tenant's.
 */
const unfitnessOf = (storageClass: StorageClass): string | undefined => {
  const { parameters = {}, metadata } = storageClass;
  const isKey = ([name, value]: readonly [string, string]): boolean =>
    /secret-(?:name|namespace)$/.test(name) && value.includes('${pv');
  if (Object.entries(parameters).some(isKey))
    return `class ${metadata.name} encrypts each volume with a key of its own`;
  const isOfImage = ownerOf(storageClass) !== undefined || parameters['backingImage'] !== undefined;
  return isOfImage ? `class ${metadata.name} is the class of an image` : undefined;
};

/** The copy before it exists, as far as it is known. */
const expectedOrigin = (
  origin: ReadyOrigin,
  { storageClass, profile, volumeMode, snapshotClass }: Copying & { readonly snapshotClass: string | undefined },
  context: PlanContext,
): ReadyOrigin => ({
  ...origin,
  className: storageClass.metadata.name,
  clone: {
    what: origin.clone.what,
    driver: storageClass.provisioner,
    volumeMode,
    bytes: Math.max(sizeLike(origin.clone, volumeMode, context), leastBytesOf(storageClass, profile)),
    diskBytes: origin.clone.diskBytes,
    hasSnapshot: false,
    snapshotClass,
    hasClaim: true,
  },
});

const strategyFor = ({ clone }: ReadyOrigin, target: CloneTarget): CloneStrategy | undefined => {
  const choice = chooseClone(clone, target);
  return choice.is === 'chosen' ? choice.strategy : undefined;
};

/** By the storage: a copy that a Job would copy once more gains nothing. */
const isCloned = (origin: ReadyOrigin, target: CloneTarget): boolean =>
  (strategyFor(origin, target) ?? 'copy') !== 'copy';

/** Whether a copy is worth making for disks as large as the version; `why`: it is not, and who asked for it should know. */
export const worthOf = (
  origin: ReadyOrigin,
  place: Copying & { readonly snapshotClass: string | undefined },
  context: PlanContext,
): { readonly is: 'worth' | 'not needed' } | { readonly is: 'useless'; readonly why: string } => {
  const { storageClass, profile, volumeMode } = place;
  const { name } = storageClass.metadata;
  const target = {
    storageClass,
    volumeMode,
    overhead: context.settings.filesystemOverhead,
    strategy: cloneStrategyOf(storageClass, profile?.spec),
  };
  if (origin.className === name || isCloned(origin, { ...target, bytes: origin.clone.bytes }))
    return { is: 'not needed' };
  const unfit = unfitnessOf(storageClass);
  if (unfit !== undefined) return { is: 'useless', why: unfit };
  const there = expectedOrigin(origin, place, context);
  if (isCloned(there, { ...target, bytes: there.clone.bytes })) return { is: 'worth' };
  return { is: 'useless', why: `class ${name} cannot clone volumes, so disks there would be copied from it as well` };
};

export type Through =
  | { readonly is: 'direct' }
  | { readonly is: 'planned'; readonly plan: Plan }
  /** It is cloned from the copy; `used` comes first. */
  | {
      readonly is: 'copied';
      readonly volume: Volume;
      readonly origin: ReadyOrigin;
      readonly used: readonly Action[];
    };

type Observed = ObservedVolumeClone & { readonly goldenCopy: ObservedCopy };

/** A snapshot that was taken of the version for this clone is used up first. */
const hasOtherSnapshot = ({ sourceSnapshot, stage }: Observed, copy: ReadyOrigin | undefined): boolean => {
  const taken = sourceSnapshot ?? stage?.sourceSnapshot;
  return taken !== undefined && taken.spec.source.persistentVolumeClaimName !== copy?.claim?.metadata.name;
};

interface Way {
  readonly volume: Volume;
  readonly origin: ReadyOrigin;
  readonly place: Copying;
}

/** The copy as a source, complete or expected; `undefined`: the disk gains nothing by it. */
const wayThrough = (
  volume: Volume,
  observed: Observed,
  context: PlanContext,
  obstacle: string | undefined,
): Way | undefined => {
  const { origin, storageClass, profile, goldenCopy } = observed;
  const direct = targetFor(volume, observed, context, obstacle);
  if (unfitnessOf(storageClass) !== undefined || strategyFor(origin, direct) !== 'copy') return undefined;
  const { volumeMode } = direct;
  const place = { storageClass, profile, volumeMode };
  const { snapshotClass } = goldenCopy;
  const there = goldenCopy.origin ?? expectedOrigin(origin, { ...place, snapshotClass }, context);
  const fixed = { ...volume, claim: { ...volume.claim, volumeMode } };
  const target = targetFor(fixed, { ...observed, origin: there }, context, obstacle);
  if (!isCloned(there, target) || hasOtherSnapshot(observed, goldenCopy.origin)) return undefined;
  return { volume: fixed, origin: there, place };
};

/** `obstacle`: why the storage must not clone the disk by itself. */
export const throughCopy = (
  volume: Volume,
  observed: Observed,
  context: PlanContext,
  obstacle: string | undefined,
): Through => {
  const { original, dataVolume, right, origin: complete } = observed.goldenCopy;
  const way = right === 'never' ? undefined : wayThrough(volume, observed, context, obstacle);
  if (way === undefined) return { is: 'direct' };
  if (dataVolume === undefined)
    return right === 'make'
      ? awaitCopy(volume, observed, buildCopy(original, { ...way.place, wakes: linkOf(volume) }), true)
      : { is: 'direct' };
  if (complete !== undefined)
    return { is: 'copied', ...way, used: [...noteUse(dataVolume, context.now), ...touch(observed.origin, context)] };
  // Complete, and yet nothing can be cloned from it: its claim is lost, or on its way out.
  const isLost = dataVolume.status?.phase === 'Succeeded';
  return isLost || isStuck(dataVolume, context.now) ? { is: 'direct' } : awaitCopy(volume, observed, dataVolume, false);
};

/** Without a deadline: that of the copy counts. */
const awaitCopy = (volume: Volume, { origin, storageClass }: Observed, copy: DataVolume, isNew: boolean): Through => {
  const { namespace, name } = copy.metadata;
  const message = `${origin.clone.what} is copied into class ${storageClass.metadata.name} once, by DataVolume ${namespace}/${name}: this volume is cloned from that copy once it is there`;
  const actions = isNew ? [ensure(dataVolumes, copy)] : [];
  return { is: 'planned', plan: { ...rest(volume, { reason: 'SameContent', message }), actions } };
};

const linkOf = ({ source }: Volume): CopyRecord['wakes'] => {
  if (source?.type !== 'object') return undefined;
  const { groupKind, namespace, name } = source;
  return { groupKind, namespace, name };
};

/** On the DataVolume, so that a pass of the tick that saw it unused cannot remove it any more. */
const noteUse = (copy: DataVolume, now: number): readonly Action[] =>
  isUseDue(copy, now) ? [patch(dataVolumes, copy, useMark(now))] : [];
