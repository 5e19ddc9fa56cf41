// A disk that a Job fills. Its claim must not be bound before the bytes are complete: a pod would start with an unfinished disk. So the claim names what
// fills it as its data source, which CSI provisioners leave to others; the Job fills a second claim, the prime claim (in a class that waits for its
// first consumer, where that is to run); and the persistent volume of that is bound to the claim of the disk once it is complete. At each moment
// the volume belongs to one of the two, so that it is reclaimed with whichever is left. Pure; called by making.ts and filling.ts.
import { z } from 'zod';
import {
  type Job,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
  type TypedLocalReference,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import { childMetadata, keyOf, type ObjectRef } from '#shared/api/object.ts';
import { type Action, type Plan, type PlanContext, patch, remove, removeJob } from '#shared/populate/actions.ts';
import { Population } from '#shared/populate/population.ts';
import { restingState, storageWaitingState, waitingState } from '#shared/populate/state.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import { isWhole } from '#shared/populate/volume/state.ts';
import { isGolden, type Volume } from '#shared/populate/volume/volume.ts';
import { redact } from '#shared/runtime/redact.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

/** On a claim: the node of its first consumer, which the scheduler chose. */
export const selectedNode = 'volume.kubernetes.io/selected-node';

/** CDI's name, with the UID of the object in place of the claim's. */
export const primeName = ({ uid }: Pick<ObjectRef, 'uid'>): string => `prime-${uid}`;

/**
 * Whether the disk gets its volume from a prime claim. Golden volumes do not: nobody mounts them before they are ready. Provisioners that are not of CSI
 * may ignore a data source.
 */
export const needsPrime = (
  volume: Volume,
  { storageClass, isDriverOfCsi }: Pick<ObservedVolume, 'storageClass' | 'isDriverOfCsi'>,
): boolean => mayNeedPrime(volume, storageClass) && isDriverOfCsi === true;

export const mayNeedPrime = (volume: Volume, storageClass: StorageClass | undefined): boolean =>
  storageClass !== undefined && !isGolden(volume);

/** The data source of its claim. */
export const filledBy = ({ ref }: Volume): TypedLocalReference => ({
  apiGroup: ref.apiVersion.split('/')[0] ?? '',
  kind: ref.kind,
  name: ref.name,
});

/** Whether a claim of ours was created to get the volume of a prime claim: storage itself fills from claims and snapshots only. */
export const isPrimed = ({ spec: { dataSourceRef } }: PersistentVolumeClaim): boolean =>
  dataSourceRef?.apiGroup !== undefined && !['', volumeSnapshots.group].includes(dataSourceRef.apiGroup);

/** Kept by no backup of the namespace, as CDI's. */
const excluded = { 'velero.io/exclude-from-backup': 'true' } as const;

export const buildPrime = ({ ref }: Volume, { metadata, spec }: PersistentVolumeClaim): PersistentVolumeClaim => {
  const { dataSource: _source, dataSourceRef: _reference, volumeName: _volume, ...asked } = spec;
  const own = childMetadata(ref, 'prime', primeName(ref));
  const node = metadata.annotations?.[selectedNode];
  const chosen = node === undefined ? {} : { [selectedNode]: node };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      ...own,
      labels: { ...own.labels, ...excluded },
      annotations: { ...own.annotations, ...chosen },
    },
    spec: asked,
  };
};

/** The claim to create beside that of the disk, if any. */
export const primesOf = (volume: Volume, claim: PersistentVolumeClaim): readonly PersistentVolumeClaim[] =>
  isPrimed(claim) ? [buildPrime(volume, claim)] : [];

/** On the claim of the disk, from the moment its bytes are complete: no Job may write to that volume any more. */
const Handover = z.object({ volume: z.string(), population: Population });

export const handoverTo = ({ metadata }: PersistentVolumeClaim): z.infer<typeof Handover> | undefined =>
  parseJsonAs(Handover, metadata.annotations?.[annotations.handover]);

/** Its consumer has chosen its node, or it gets its volume now. */
export const isPrimeDue = (claim: PersistentVolumeClaim): boolean =>
  isPrimed(claim) &&
  claim.status?.phase !== 'Bound' &&
  (claim.metadata.annotations?.[selectedNode] !== undefined || handoverTo(claim) !== undefined);

interface Complete {
  readonly claim: PersistentVolumeClaim;
  readonly prime: PersistentVolumeClaim;
  readonly primeVolume?: PersistentVolume | undefined;
  readonly job?: Job | undefined;
}

/**
 * Whether it may be bound to the claim: it is the volume of the prime claim, or of the claim already. What a claim says of it proves nothing, since
 * its user may write that, and a persistent volume belongs to no namespace.
 */
const isOfThem = (
  volume: PersistentVolume | undefined,
  { claim, prime }: Pick<ObservedVolume, 'prime'> & { readonly claim: PersistentVolumeClaim },
): volume is PersistentVolume => {
  const holder = volume?.spec.claimRef?.uid;
  const isLeaving = volume?.metadata.deletionTimestamp !== undefined;
  return holder !== undefined && !isLeaving && [claim.metadata.uid, prime?.metadata.uid].includes(holder);
};

const handingOver = (volume: Volume, { metadata }: PersistentVolumeClaim, context: PlanContext): Plan['state'] => {
  const message = `the disk is complete, and its volume is being bound to claim ${metadata.name}`;
  return waitingState(volume, volume.state, { phase: 'Verifying', reason: 'HandingOver', message }, context);
};

/** Only the volume as it was read: another claim may have got it since. */
const rebind = (claim: PersistentVolumeClaim, volume: PersistentVolume): Action => {
  const { uid } = claim.metadata;
  const claimRef = { apiVersion: 'v1', kind: claim.kind, ...keyOf(claim), uid, resourceVersion: null };
  return patch(persistentVolumes, volume, { spec: { claimRef } });
};

/** The claim records what it will hold before it gets the volume. */
export const planHandover = (
  volume: Volume,
  { claim, prime, primeVolume, job }: Complete,
  population: Population,
  context: PlanContext,
): Plan => {
  if (!isOfThem(primeVolume, { claim, prime })) return startOver(volume, { prime, job }, context);
  const record = { [annotations.handover]: JSON.stringify({ volume: primeVolume.metadata.name, population }) };
  return {
    actions: [patch(persistentVolumeClaims, claim, { metadata: { annotations: record } }), rebind(claim, primeVolume)],
    state: handingOver(volume, claim, context),
  };
};

type Primed = ObservedVolume & { readonly claim: PersistentVolumeClaim };

/** What to do before the Job that fills a claim is looked at; `undefined`: that Job, on the claim `targetOf`. */
export const planAround = (volume: Volume, observed: Primed, context: PlanContext): Plan | undefined => {
  const { claim, prime, job } = observed;
  const handover = handoverTo(claim);
  const isBound = claim.status?.phase === 'Bound';
  if (!isBound && handover !== undefined) return planRebinding(volume, observed, context);
  const target = isBound ? claim.metadata.name : primeName(volume.ref);
  const isAstray = job !== undefined && writtenBy(job) !== target;
  const isUseless = prime !== undefined && (isBound || !isWhole(prime));
  return isAstray || isUseless ? startOver(volume, observed, context) : undefined;
};

/** The claim that its Job writes to. */
const writtenBy = ({ spec }: Job): string | undefined =>
  spec.template.spec.volumes?.find(({ name }) => name === 'target')?.persistentVolumeClaim?.claimName;

const planRebinding = (volume: Volume, observed: Primed, context: PlanContext): Plan => {
  const { claim, primeVolume } = observed;
  if (!isOfThem(primeVolume, observed)) {
    const { actions, state } = startOver(volume, observed, context);
    const forget = patch(persistentVolumeClaims, claim, {
      metadata: { annotations: { [annotations.handover]: null } },
    });
    return { actions: [...actions, forget], state };
  }
  const isDone = primeVolume.spec.claimRef?.uid === claim.metadata.uid;
  return { actions: isDone ? [] : [rebind(claim, primeVolume)], state: handingOver(volume, claim, context) };
};

/** Its volume is lost, or somebody else provisioned one for the claim, which a Job then fills in place. */
const startOver = (
  volume: Volume,
  { prime, job }: Pick<ObservedVolume, 'prime' | 'job'>,
  context: PlanContext,
): Plan => {
  const message = 'the volume that was being filled is not the one of the claim; starting again';
  const next = { ...volume.state, attempts: 0, attemptsFailed: 0, transfer: undefined, progress: 0 };
  return {
    actions: [...removeJob(job), ...remove(persistentVolumeClaims, prime)],
    state: waitingState(volume, next, { phase: 'Pending', reason: 'ChildDeleted', message }, context),
  };
};

/** The claim that a Job writes to; `undefined`: it does not exist yet. */
export const targetOf = ({ claim, prime }: Primed): PersistentVolumeClaim | undefined =>
  isPrimed(claim) && claim.status?.phase !== 'Bound' ? prime : claim;

/** The storage makes the volume where the consumer is to run. A provisioner that cannot removes the node, so that the scheduler chooses again. */
export const planProvisioning = (
  volume: Volume,
  { claim, prime, warnings: [warning] = [] }: Primed & { readonly prime: PersistentVolumeClaim },
  context: PlanContext,
): Plan => {
  const { name } = prime.metadata;
  if (prime.metadata.annotations?.[selectedNode] === undefined)
    return {
      actions: [
        ...remove(persistentVolumeClaims, prime),
        patch(persistentVolumeClaims, claim, { metadata: { annotations: { [selectedNode]: null } } }),
      ],
      state: restingState(volume, {
        reason: 'WaitForFirstConsumer',
        message: `the storage cannot make a volume on the node that was chosen for claim ${claim.metadata.name}; another is being chosen`,
      }),
    };
  const step =
    warning === undefined
      ? { reason: 'Starting', message: `waiting for claim ${name} to be bound` }
      : { reason: warning.reason ?? 'Starting', message: `claim ${name}: ${redact(warning.message ?? '')}` };
  const wait = { ...step, phase: 'Pending', child: prime, isComplaining: warning !== undefined } as const;
  return { actions: [], state: storageWaitingState(volume, volume.state, wait, context) };
};
