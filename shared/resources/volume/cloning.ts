// A volume that begins as a copy of another one of its namespace: how large, in which modes, and the claim that says so.
import type { StorageClass, VolumeMode } from '#shared/api/foreign/core.ts';
import type { Action } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { planCloning } from '#shared/backends/cloning.ts';
import type { ReadyOrigin } from '#shared/backends/origin.ts';
import { failedState } from '#shared/backends/state.ts';
import type { CloneRecord } from '#shared/populate/clone-record.ts';
import { type CloneTarget, chooseClone } from '#shared/populate/clone.ts';
import { type ClaimProfile, cloneStrategyOf } from '#shared/populate/profile.ts';
import { volumeBytesFor } from '#shared/populate/sizing.ts';
import { contentMark } from '#shared/resources/volume/content.ts';
import { atLeast, buildClaim, bytesFor, makeClaim, modesFor } from '#shared/resources/volume/making.ts';
import type { ObservedVolume } from '#shared/resources/volume/observed.ts';
import { rest } from '#shared/resources/volume/state.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

export type ObservedClone = ObservedVolume & { readonly origin: ReadyOrigin; readonly storageClass: StorageClass };

type Target = CloneTarget & ClaimProfile;

/** As large as its source, or as large as the disk in that needs in another mode: a file system takes room beside it. */
const sizeLike = (clone: ReadyOrigin['clone'], volumeMode: VolumeMode, { settings }: PlanContext): number =>
  volumeMode === clone.volumeMode
    ? clone.bytes
    : volumeBytesFor(clone.diskBytes, volumeMode, settings.filesystemOverhead);

/** `obstacle`: why the storage may not do it by its own means. */
export const targetFor = (
  volume: Volume,
  observed: ObservedClone,
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
    bytes: atLeast(asked, volume, observed),
    strategy: cloneStrategyOf(storageClass, observed.profile?.spec),
    overhead: context.settings.filesystemOverhead,
    obstacle,
  };
};

/** Why it cannot become a copy of this one now; `undefined`: it can. */
export const cloneObstacle = (
  volume: Volume,
  observed: ObservedClone,
  context: PlanContext,
  obstacle?: string,
): string | undefined => {
  const choice = chooseClone(observed.origin.clone, targetFor(volume, observed, context, obstacle));
  return choice.is === 'chosen' ? undefined : choice.message;
};

export const planClone = (volume: Volume, observed: ObservedClone, context: PlanContext, obstacle?: string): Plan => {
  const target = targetFor(volume, observed, context, obstacle);
  const cloning = planCloning(volume, observed, target, context);
  switch (cloning.is) {
    case 'refused':
      return { actions: [], state: failedState(volume.state, cloning.reason, cloning.message) };
    case 'waiting':
      return rest(volume, cloning);
    case 'planned':
      return cloning.plan;
    case 'chosen':
      return makeClone(volume, observed, { ...cloning, target, context });
  }
};

interface Decided {
  readonly record: CloneRecord;
  readonly dataSource: Parameters<typeof buildClaim>[1]['dataSource'];
  readonly touched: readonly Action[];
  readonly target: Target;
  readonly context: PlanContext;
}

const makeClone = (
  volume: Volume,
  observed: ObservedClone,
  { record, dataSource, touched, target, context }: Decided,
): Plan => {
  const { storageClass } = observed;
  const claim = buildClaim(volume, {
    className: storageClass.metadata.name,
    volumeMode: target.volumeMode,
    bytes: target.bytes,
    accessModes: target.accessModes,
    content: contentMark(volume, observed),
    record,
    dataSource,
  });
  const plan = makeClaim(volume, { claim, storageClass, record }, context);
  return { ...plan, actions: [...touched, ...plan.actions] };
};
