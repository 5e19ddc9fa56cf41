// A disk in a backup target, which CDI cannot read: a Job restores it into an additional claim, and the DataVolume is a copy of that; the claim
// is removed after the copy. Pure except for the reads.
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type Action, remove, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { type ObservedCdi, type RestoreStage, stageName } from '#shared/backends/cdi/observed.ts';
import { volumeOf } from '#shared/backends/csi/volume.ts';
import { waitingState } from '#shared/populate/state.ts';
import { planVolume } from '#shared/populate/volume/plan.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import { populationOf } from '#shared/populate/population.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Image } from '#shared/backends/backend.ts';

/** The source of the DataVolume, once it is ready. */
export const readyStage = (image: Image, { stage }: ObservedCdi): ObservedCdi['cloned'] =>
  populationOf(stage?.volume) === undefined || stage?.volume?.metadata.deletionTimestamp !== undefined
    ? undefined
    : { is: 'ready', namespace: image.ref.namespace ?? 'default', name: stageName(image) };

/** The inspection of the restored disk. */
export const stagedDisk = ({ stage }: ObservedCdi): Inspection | undefined => populationOf(stage?.volume)?.inspection;

/** The claim as a volume of the engine. */
const stagedVolume = (image: Image): Volume => {
  const volume = volumeOf(image);
  const claim = { ...volume.claim, name: stageName(image), annotations: undefined, filled: undefined };
  return { ...volume, claim, snapshot: undefined };
};

/** The next step towards a claim with the disk. */
export const planStage = (image: Image, observed: ObservedCdi, context: PlanContext): Plan => {
  const { volume: claim, importJob: job } = observed.stage ?? {};
  const { inspectJob, pods, storageClass, profile, foreign } = observed;
  const around = { claim, job, inspectJob, pods, storageClass, profile, taken: foreign[0] };
  const plan = planVolume(stagedVolume(image), around, context);
  if (plan.state.phase !== 'Available') return plan;
  const message = 'the disk is restored; creating a DataVolume from it';
  const step = { phase: 'Verifying', reason: 'Restored', message } as const;
  return { ...plan, state: waitingState(image, plan.state, step, context) };
};

/** A filled claim is kept when the image is restarted. */
export const dirtyStage = ({ stage }: ObservedCdi): RestoreStage =>
  populationOf(stage?.volume) === undefined ? (stage ?? {}) : {};

export const removeStage = ({ importJob, volume }: RestoreStage = {}): readonly Action[] => [
  ...removeJob(importJob),
  ...remove(persistentVolumeClaims, volume),
];
