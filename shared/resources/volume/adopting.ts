// A claim that somebody else made and filled becomes ours, with what is in it; nothing is written to it. Called by plan.ts.
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { childMetadata } from '#shared/api/owner.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { patch } from '#shared/backends/actions.ts';
import type { Plan } from '#shared/backends/backend.ts';
import { type Population, populatedPatch, populationOf, requestedBytes } from '#shared/populate/volume.ts';
import { usableState } from '#shared/resources/volume/state.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

/** What it was filled with nobody tells: a disk as large as it is. */
const populationIn = (claim: PersistentVolumeClaim): Population => {
  const virtualSize = parseQuantity(claim.status?.capacity?.['storage']) ?? requestedBytes(claim);
  return { inspection: { format: 'raw', compression: 'none', virtualSize }, digests: {} };
};

/** Kubernetes has one controller of an object: where it has one already, we are an owner beside. */
const ownersOf = ({ ref }: Volume, { metadata }: PersistentVolumeClaim): readonly object[] => {
  const before = metadata.ownerReferences ?? [];
  const [own] = childMetadata(ref, 'disk', metadata.name).ownerReferences ?? [];
  const isControlled = before.some(({ controller }) => controller === true);
  return [...before, { ...own, controller: !isControlled }];
};

export const planAdopted = (volume: Volume, claim: PersistentVolumeClaim): Plan => {
  const known = claim.metadata.labels?.[labels.ownerUid] === volume.ref.uid ? populationOf(claim) : undefined;
  const population = known ?? populationIn(claim);
  const marks = childMetadata(volume.ref, 'disk', claim.metadata.name);
  const { metadata } = populatedPatch(population, { ...marks.annotations, ...volume.claim.filled }) as {
    readonly metadata: object;
  };
  const change = { metadata: { ...metadata, labels: marks.labels, ownerReferences: ownersOf(volume, claim) } };
  return {
    actions: known === undefined ? [patch(persistentVolumeClaims, claim, change)] : [],
    state: usableState(volume, claim, population),
  };
};
