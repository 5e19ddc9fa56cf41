// A claim that its storage fills, in a WaitForFirstConsumer class, and that must be bound at once: a Job that mounts it is the first consumer.
// Called by the readers and by the plans.
import {
  type Job,
  type PersistentVolumeClaim,
  type StorageClass,
  jobs,
  type AccessMode,
  type PersistentVolume,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/api/foreign/core.ts';
import { create, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { storageWaitingState, waitingState } from '#shared/populate/state.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { volumeModeOf, type Population, populatedMark } from '#shared/populate/population.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { buildClaim } from '#shared/populate/volume/making.ts';

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

/** It mounts the claim read-only and ignores its content. */
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

// A persistent volume with data that a user reserved for a claim by name (`claimRef`): the claim is bound to it, and nothing is written.

export const findPromised = async (kube: KubeClient, { claim, ref }: Volume): Promise<PersistentVolume | undefined> => {
  if (claim.mayBeStatic !== true) return undefined;
  for await (const volume of kube.listAll(persistentVolumes)) {
    const { claimRef } = volume.spec;
    const isOurs = claimRef?.namespace === ref.namespace && claimRef?.name === claim.name && claimRef.uid === undefined;
    if (isOurs && volume.metadata.deletionTimestamp === undefined) return volume;
  }
  return undefined;
};

const step = (message: string) => ({ phase: 'Cloning', reason: 'Binding', message }) as const;

/** Marks it as filled at once: nothing may ever write to it. */
export const planPromised = (volume: Volume, promised: PersistentVolume, context: PlanContext): Plan => {
  const { storageClassName = '', volumeMode = 'Filesystem', accessModes, capacity } = promised.spec;
  const { name, annotations, filled } = volume.claim;
  const bytes = parseQuantity(capacity['storage']) ?? 0;
  const population: Population = {
    inspection: { format: 'raw', compression: 'none', virtualSize: bytes },
    digests: {},
  };
  const marked = { ...volume.claim, annotations: { ...annotations, ...filled, ...populatedMark(population) } };
  const claim = buildClaim(
    { ...volume, claim: marked },
    {
      className: storageClassName,
      volumeMode,
      accessModes: accessModes as readonly AccessMode[],
      bytes,
      volumeName: promised.metadata.name,
    },
  );
  const message = `claim ${name} takes persistent volume ${promised.metadata.name}, which was reserved for it with its data`;
  const next = { ...volume.state, storageClassName, children: { ...volume.state.children, volume: name } };
  return {
    actions: [create(persistentVolumeClaims, claim)],
    state: waitingState(volume, next, step(message), context),
  };
};

/** It was created for a persistent volume with data, and is about to be bound to it. */
export const isPromiseOpen = ({ spec, status }: PersistentVolumeClaim): boolean =>
  spec.volumeName !== undefined && (status?.phase ?? 'Pending') === 'Pending';

export const planBinding = (volume: Volume, { metadata, spec }: PersistentVolumeClaim, context: PlanContext): Plan => {
  const message = `waiting for claim ${metadata.name} to be bound to ${spec.volumeName}`;
  return { actions: [], state: waitingState(volume, volume.state, step(message), context) };
};
