// Moves a persistent volume to another claim. It is protected from reclaiming and labelled before its old claim is deleted, and stays so until
// its new claim is bound to it, so that a crash at any moment loses neither the bytes nor the state. Pure.
import { z } from 'zod';
import { type PersistentVolume, type PersistentVolumeClaim, persistentVolumes } from '#shared/api/foreign/core.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import { childMetadata } from '#shared/api/object.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { type Action, create, patch, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { waitingState } from '#shared/populate/state.ts';
import { requestedBytes } from '#shared/populate/population.ts';
import { buildClaim } from '#shared/populate/volume/making.ts';
import { CloneRecord } from '#shared/populate/clone/strategy.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

/** Data that would be lost with the old claim. */
const Handover = z.object({
  policy: z.enum(['Delete', 'Retain']),
  /** Bytes the old claim requested. */
  bytes: z.number(),
  record: CloneRecord,
});

const handoverOf = (volume: PersistentVolume): z.infer<typeof Handover> | undefined =>
  parseJsonAs(Handover, volume.metadata.annotations?.[annotations.handover]);

interface Leaving {
  readonly claim: PersistentVolumeClaim;
  readonly bound: PersistentVolume;
  readonly record: CloneRecord;
}

/** From now on its reclaim policy protects it, and its label identifies it. */
export const planDeparture = ({ ref }: Volume, { claim, bound, record }: Leaving): Action => {
  const { labels, annotations: marks } = childMetadata(ref, 'disk', bound.metadata.name);
  const handover = {
    policy: bound.spec.persistentVolumeReclaimPolicy ?? 'Delete',
    bytes: requestedBytes(claim),
    record: { ...record, volume: bound.metadata.name },
  };
  return patch(persistentVolumes, bound, {
    metadata: { labels, annotations: { ...marks, [annotations.handover]: JSON.stringify(handover) } },
    spec: { persistentVolumeReclaimPolicy: 'Retain' },
  });
};

/** Its old claim is gone: it is reserved for the new one by name, because the UID is not known before that is created. */
export const planArrival = (volume: Volume, arriving: PersistentVolume, context: PlanContext): Plan => {
  const { name } = volume.claim;
  const known = handoverOf(arriving);
  const { storageClassName = '', volumeMode = 'Filesystem', accessModes, capacity } = arriving.spec;
  const claim = buildClaim(volume, {
    className: storageClassName,
    volumeMode,
    accessModes: accessModes as NonNullable<PersistentVolumeClaim['spec']['accessModes']>,
    bytes: known?.bytes ?? parseQuantity(capacity['storage']) ?? 0,
    record: known?.record ?? { strategy: 'copy', because: 'handed over', volume: arriving.metadata.name },
    volumeName: arriving.metadata.name,
  });
  const claimRef = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    namespace: volume.ref.namespace,
    name,
    uid: null,
    resourceVersion: null,
  };
  const step = {
    phase: 'Cloning',
    reason: 'HandingOver',
    message: `claim ${name} is being bound to the copy`,
  } as const;
  return {
    actions: [patch(persistentVolumes, arriving, { spec: { claimRef } }), create(persistentVolumeClaims, claim)],
    state: waitingState(volume, { ...volume.state, storageClassName }, step, context),
  };
};

const unmarked = (volume: PersistentVolume): object => ({
  metadata: {
    labels: Object.fromEntries(Object.keys(childLabels).map((key) => [key, null])),
    annotations: { [annotations.handover]: null, [annotations.ownerName]: null, [annotations.ownerNamespace]: null },
  },
  spec: { persistentVolumeReclaimPolicy: handoverOf(volume)?.policy ?? 'Delete' },
});

const childLabels = childMetadata({ apiVersion: '', kind: '', name: '', uid: '' }, '', '').labels ?? {};

/** The new claim is bound to it: it is an ordinary volume again. */
export const arrivedAction = (volume: PersistentVolume): Action => patch(persistentVolumes, volume, unmarked(volume));

/** Its new claim will never exist: it is reserved for a claim that does not exist, so that it is reclaimed. */
export const releaseAction = (volume: PersistentVolume, deadUid: string): Action => {
  const { spec, ...rest } = unmarked(volume) as { readonly spec: object };
  const isPromised = volume.spec.claimRef !== undefined && volume.spec.claimRef.uid === undefined;
  return patch(persistentVolumes, volume, {
    ...rest,
    spec: { ...spec, ...(isPromised ? { claimRef: { uid: deadUid } } : {}) },
  });
};
