// Adopts a claim that another client created and filled, with its content; nothing is written to it. Pure.
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { labels } from '#shared/api/names.ts';
import { type KubeObject, childMetadata } from '#shared/api/object.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { type Action, type Plan, patch } from '#shared/populate/actions.ts';
import { type Population, populatedPatch, populationOf, requestedBytes } from '#shared/populate/population.ts';
import { usableState } from '#shared/populate/state.ts';
import { filledState } from '#shared/populate/volume/state.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';

/** The source of its content is unknown: a disk as large as the claim. */
const populationIn = (claim: PersistentVolumeClaim): Population => {
  const virtualSize = parseQuantity(claim.status?.capacity?.['storage']) ?? requestedBytes(claim);
  return { inspection: { format: 'raw', compression: 'none', virtualSize }, digests: {} };
};

/** Kubernetes allows one controller of an object: if it has one already, this is an additional owner. */
const ownersOf = ({ ref }: Volume, { metadata }: KubeObject): readonly object[] => {
  const before = metadata.ownerReferences ?? [];
  if (before.some(({ uid }) => uid === ref.uid)) return before;
  const [own] = childMetadata(ref, 'disk', metadata.name).ownerReferences ?? [];
  const isControlled = before.some(({ controller }) => controller === true);
  return [...before, { ...own, controller: !isControlled }];
};

/** Makes the snapshot of an adopted volume one that is watched. */
const adoptSnapshot = ({ ref }: Volume, snapshot: VolumeSnapshot): Action => {
  const { labels: marks, annotations } = childMetadata(ref, 'snapshot', snapshot.metadata.name);
  return patch(volumeSnapshots, snapshot, { metadata: { labels: marks, annotations } });
};

export const planAdopted = (volume: Volume, claim: PersistentVolumeClaim, snapshot?: VolumeSnapshot): Plan => {
  const { role = 'disk' } = volume.claim;
  const known = claim.metadata.labels?.[labels.ownerUid] === volume.ref.uid ? populationOf(claim) : undefined;
  const population = known ?? populationIn(claim);
  const marks = childMetadata(volume.ref, role, claim.metadata.name);
  const { metadata } = populatedPatch(population, { ...marks.annotations, ...volume.claim.filled }) as {
    readonly metadata: object;
  };
  const change = { metadata: { ...metadata, labels: marks.labels, ownerReferences: ownersOf(volume, claim) } };
  const state = filledState(volume, claim, population);
  const children = { ...state.children, ...(snapshot === undefined ? {} : { snapshot: snapshot.metadata.name }) };
  return {
    // The claim last: once it is marked, nothing looks for what else was left.
    actions: [
      ...(snapshot === undefined ? [] : [adoptSnapshot(volume, snapshot)]),
      ...(known === undefined ? [patch(persistentVolumeClaims, claim, change)] : []),
    ],
    state: usableState(volume, { ...state, children }, role === 'volume' ? 'image' : 'volume'),
  };
};
