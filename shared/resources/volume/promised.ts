// A persistent volume that somebody brought with its data and promised to a claim by name, before there is one: the claim takes it, and nothing is written
// to it. Called by what reads and by what plans.
import {
  type AccessMode,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/api/foreign/core.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { create } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { waitingState } from '#shared/backends/state.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Population, populatedMark } from '#shared/populate/volume.ts';
import { buildClaim } from '#shared/resources/volume/making.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

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

/** Says at once that it is filled: nothing may ever write to it. */
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
  const message = `claim ${name} takes persistent volume ${promised.metadata.name}, which was promised to it with its data`;
  const next = { ...volume.state, storageClassName, children: { ...volume.state.children, volume: name } };
  return {
    actions: [create(persistentVolumeClaims, claim)],
    state: waitingState(volume, next, step(message), context),
  };
};

/** It was made for a volume that comes with its data, which is its own in a moment. */
export const isPromiseOpen = ({ spec, status }: PersistentVolumeClaim): boolean =>
  spec.volumeName !== undefined && (status?.phase ?? 'Pending') === 'Pending';

export const planBinding = (volume: Volume, { metadata, spec }: PersistentVolumeClaim, context: PlanContext): Plan => {
  const message = `waiting for claim ${metadata.name} to be bound to ${spec.volumeName}`;
  return { actions: [], state: waitingState(volume, volume.state, step(message), context) };
};
