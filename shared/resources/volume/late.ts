// A volume whose place its consumer chose, so that it was made empty: once it is there, it is copied from whoever has the same bytes, or waits for who
// fetches them, or fetches them for all. Pure; called by filling.ts.
import { type PersistentVolumeClaim, type StorageClass, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { patch } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { planCloning } from '#shared/backends/cloning.ts';
import { type ObservedSingleflight, decideSingleflight } from '#shared/backends/singleflight/singleflight.ts';
import { holdKept } from '#shared/backends/singleflight/hold.ts';
import type { ReadyOrigin } from '#shared/backends/origin.ts';
import { recordAnnotation } from '#shared/populate/clone-record.ts';
import { type CloneTarget, chooseClone } from '#shared/populate/clone.ts';
import { requestedBytes, volumeModeOf } from '#shared/populate/volume.ts';
import { targetFor } from '#shared/resources/volume/cloning.ts';
import type { ObservedVolume } from '#shared/resources/volume/observed.ts';
import { fetchedFor, rest } from '#shared/resources/volume/state.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

export type Late = ObservedVolume & {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass;
  readonly singleflight: ObservedSingleflight;
};

/** Starts the Job that fills the claim. */
type Start = (volume: Volume, claim: PersistentVolumeClaim, context: PlanContext) => Plan;

const obstacle = 'the volume was made where its consumer is, before its bytes were there';

type Copied = Late & { readonly origin: ReadyOrigin };

/** The volume as it was made. */
const targetOf = (volume: Volume, observed: Copied, context: PlanContext): CloneTarget => ({
  ...targetFor(volume, observed, context, obstacle),
  volumeMode: volumeModeOf(observed.claim),
  bytes: requestedBytes(observed.claim),
});

/** Only what has a claim can be copied by a Job. */
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
      return start(volume, claim, context);
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

/** The claim says how it is filled before the Job does so. */
const planCopied = (volume: Volume, observed: Copied, start: Start, context: PlanContext): Plan => {
  const { claim, singleflight, origin } = observed;
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
      ...holdKept(volume.ref, singleflight.name, origin),
      ...touched,
      patch(persistentVolumeClaims, claim, { metadata: { annotations } }),
      ...actions,
    ],
    state,
  };
};
