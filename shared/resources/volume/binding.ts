// A claim that its storage fills, in a class that waits for a pod, and that is wanted at once: a Job that looks at it is that pod. Called by what reads
// and by what plans.
import { type Job, type PersistentVolumeClaim, type StorageClass, jobs } from '#shared/api/foreign/core.ts';
import { create } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { storageWaitingState } from '#shared/backends/state.ts';
import { recordOf } from '#shared/populate/clone-record.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { buildTransferJob } from '#shared/populate/transfer-job.ts';
import { volumeModeOf } from '#shared/populate/volume.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

export const needsBinder = (
  { isBoundAtOnce }: Volume,
  claim: PersistentVolumeClaim,
  storageClass: StorageClass | undefined,
): boolean => {
  const record = recordOf(claim);
  const isFilledByStorage = record !== undefined && record.strategy !== 'copy' && record.volume === undefined;
  const isWaiting =
    storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && (claim.status?.phase ?? 'Pending') === 'Pending';
  return isBoundAtOnce === true && isFilledByStorage && isWaiting;
};

/** It mounts the claim read-only, and what it finds is of no interest. */
const buildBinder = ({ ref, retries, pod }: Volume, claim: PersistentVolumeClaim, settings: PopulateSettings): Job =>
  buildTransferJob(
    {
      mode: 'inspect',
      owner: ref,
      source: { type: 'claim', claimName: claim.metadata.name, volumeMode: volumeModeOf(claim) },
      retries,
      pod,
    },
    settings,
  );

export const planBinder = (
  volume: Volume,
  { claim, inspectJob }: { readonly claim: PersistentVolumeClaim; readonly inspectJob?: Job | undefined },
  context: PlanContext,
): Plan => {
  const message = `a Job uses claim ${claim.metadata.name} once, so that it is bound`;
  const wait = { phase: 'Cloning', reason: 'Binding', message, child: claim, isComplaining: false } as const;
  const job = inspectJob === undefined ? [create(jobs, buildBinder(volume, claim, context.settings))] : [];
  return { actions: job, state: storageWaitingState(volume, volume.state, wait, context) };
};
