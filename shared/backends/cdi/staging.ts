// A disk that lies in a backup target. CDI reads no such disks, so that a Job of ours fills a claim beside, which the DataVolume is then a copy
// of; that claim goes once the copy is whole. Pure but for the reads.
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type Action, patch, remove, removeJob, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { type ObservedCdi, type RestoreStage, stageName } from '#shared/backends/cdi/observed.ts';
import { planFilling } from '#shared/backends/csi/filling.ts';
import { planVolume } from '#shared/backends/csi/sizing.ts';
import { countAttempts, waitingState } from '#shared/populate/state.ts';
import { readTransfer } from '#shared/populate/job/attempts.ts';
import { populatedPatch, populationOf } from '#shared/populate/population.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Image } from '#shared/backends/image.ts';

/** What the DataVolume is made from, once it is there. */
export const readyStage = (image: Image, { stage }: ObservedCdi): ObservedCdi['cloned'] =>
  populationOf(stage?.volume) === undefined || stage?.volume?.metadata.deletionTimestamp !== undefined
    ? undefined
    : { is: 'ready', namespace: image.ref.namespace ?? 'default', name: stageName(image) };

/** What was found about the disk as it was restored. */
export const stagedDisk = ({ stage }: ObservedCdi): Inspection | undefined => populationOf(stage?.volume)?.inspection;

/** The next step towards a claim that holds the disk. */
export const planStage = (image: Image, observed: ObservedCdi, context: PlanContext): Plan => {
  const name = stageName(image);
  const staged: Image = {
    ...image,
    childNames: { volume: name, snapshot: name },
    volumeMarks: { filling: {}, filled: {} },
  };
  const { volume, importJob } = observed.stage ?? {};
  const { inspectJob, pods, storageClass, profile, foreign } = observed;
  const around = { importJob, inspectJob, pods, storageClass, profile, foreign };
  if (volume === undefined) return planVolume(staged, around, context);
  const run = importJob === undefined ? undefined : readTransfer(importJob, pods, context.now);
  if (run?.is !== 'succeeded' || volume.metadata.deletionTimestamp !== undefined)
    return planFilling(staged, { ...around, volume }, context);
  const { inspection, digests } = run.report;
  const message = 'the disk is restored; a DataVolume is made from it';
  const state = { ...countAttempts(image.state, run), inspection, digests, lastFailure: undefined };
  return {
    actions: [patch(persistentVolumeClaims, volume, populatedPatch({ inspection, digests }, {}))],
    state: waitingState(image, state, { phase: 'Verifying', reason: 'Restored', message }, context),
  };
};

/** A claim that is filled is worth keeping when the image is started over. */
export const dirtyStage = ({ stage }: ObservedCdi): RestoreStage =>
  populationOf(stage?.volume) === undefined ? (stage ?? {}) : {};

export const removeStage = ({ importJob, volume }: RestoreStage = {}): readonly Action[] => [
  ...removeJob(importJob),
  ...remove(persistentVolumeClaims, volume),
];
