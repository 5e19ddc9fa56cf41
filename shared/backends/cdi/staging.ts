// A disk that lies in a backup target. CDI reads no such disks, so that a Job of ours fills a claim beside, which the DataVolume is then a copy
// of; that claim goes once the copy is whole. Pure but for the reads.
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type Action, remove, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { type ObservedCdi, type RestoreStage, stageName } from '#shared/backends/cdi/observed.ts';
import { volumeOf } from '#shared/backends/csi/volume.ts';
import { waitingState } from '#shared/populate/state.ts';
import { planVolume } from '#shared/populate/volume/plan.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import { populationOf } from '#shared/populate/population.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Image } from '#shared/backends/image.ts';

/** What the DataVolume is made from, once it is there. */
export const readyStage = (image: Image, { stage }: ObservedCdi): ObservedCdi['cloned'] =>
  populationOf(stage?.volume) === undefined || stage?.volume?.metadata.deletionTimestamp !== undefined
    ? undefined
    : { is: 'ready', namespace: image.ref.namespace ?? 'default', name: stageName(image) };

/** What was found about the disk as it was restored. */
export const stagedDisk = ({ stage }: ObservedCdi): Inspection | undefined => populationOf(stage?.volume)?.inspection;

/** The claim as the engine makes it. */
const stagedVolume = (image: Image): Volume => {
  const volume = volumeOf(image);
  const claim = { ...volume.claim, name: stageName(image), annotations: undefined, filled: undefined };
  return { ...volume, claim, snapshot: undefined };
};

/** The next step towards a claim that holds the disk. */
export const planStage = (image: Image, observed: ObservedCdi, context: PlanContext): Plan => {
  const { volume: claim, importJob: job } = observed.stage ?? {};
  const { inspectJob, pods, storageClass, profile, foreign } = observed;
  const around = { claim, job, inspectJob, pods, storageClass, profile, taken: foreign[0] };
  const plan = planVolume(stagedVolume(image), around, context);
  if (plan.state.phase !== 'Available') return plan;
  const message = 'the disk is restored; a DataVolume is made from it';
  const step = { phase: 'Verifying', reason: 'Restored', message } as const;
  return { ...plan, state: waitingState(image, plan.state, step, context) };
};

/** A claim that is filled is worth keeping when the image is started over. */
export const dirtyStage = ({ stage }: ObservedCdi): RestoreStage =>
  populationOf(stage?.volume) === undefined ? (stage ?? {}) : {};

export const removeStage = ({ importJob, volume }: RestoreStage = {}): readonly Action[] => [
  ...removeJob(importJob),
  ...remove(persistentVolumeClaims, volume),
];
