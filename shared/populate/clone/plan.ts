// Plans a volume that starts as a copy of another volume of its namespace: the clone strategy, the snapshot that may be needed first, and the
// record on its claim. Pure; called by the plans of volumes, and of images whose bytes already exist.
import { cdiAnnotations, cdiLabels, travellingLabels } from '#shared/api/cdi/names.ts';
import { type TypedLocalReference, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject, ObjectRef } from '#shared/api/object.ts';
import { type Action, create, ensure, patch, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import type { Filled } from '#shared/populate/filled.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { buildRestored, restoredName } from '#shared/populate/clone/restoring.ts';
import { storageWaitingState } from '#shared/populate/state.ts';
import type { CloneRecord } from '#shared/populate/clone/strategy.ts';
import { type CloneChoice, type CloneTarget, chooseClone } from '#shared/populate/clone/strategy.ts';
import { buildSnapshot } from '#shared/populate/storage/snapshot.ts';
import { filesFound } from '#shared/transfer/report.ts';

/** Name of the snapshot that is taken of a source without one, and of the claim that is filled in the namespace of the source. */
export const cloneName = ({ ref }: { readonly ref: Pick<ObjectRef, 'uid'> }): string => `clone-${ref.uid}`;

export interface ObservedClone {
  readonly origin: ReadyOrigin;
  /** Taken of the source for this clone only. */
  readonly sourceSnapshot?: VolumeSnapshot | undefined;
}

export type Cloning =
  | { readonly is: 'refused' | 'waiting'; readonly reason: string; readonly message: string }
  /** A snapshot comes first. */
  | { readonly is: 'planned'; readonly plan: Plan }
  /** Input for the claim; `touched`: actions before it. */
  | {
      readonly is: 'chosen';
      readonly record: CloneRecord;
      readonly dataSource: TypedLocalReference | undefined;
      readonly touched: readonly Action[];
    };

export const planCloning = (
  owner: Filled,
  observed: ObservedClone,
  target: CloneTarget,
  context: PlanContext,
): Cloning => {
  const { origin, sourceSnapshot } = observed;
  const hasSnapshot = origin.clone.hasSnapshot || sourceSnapshot !== undefined;
  const choice = chooseClone({ ...origin.clone, hasSnapshot }, target);
  if (choice.is !== 'chosen') return choice;
  if (needsSnapshot(choice, observed)) return { is: 'planned', plan: planSourceSnapshot(owner, observed, context) };
  const read = snapshotRead(choice, observed);
  const record = recordFor(owner, { ...choice, read }, origin);
  const restored = read === undefined ? [] : [ensure(persistentVolumeClaims, buildRestored(owner.ref, origin, read))];
  const touched = [...touch(origin, context), ...restored];
  return { is: 'chosen', record, dataSource: dataSourceOf(owner, record, origin), touched };
};

/** Milliseconds between two records of a use: many machines may be made at once. */
const leastMs = 3_600_000;

export const isUseDue = ({ metadata }: KubeObject, now: number): boolean =>
  !(now - Date.parse(metadata.annotations?.[cdiAnnotations.lastUseTime] ?? '') < leastMs);

export const useMark = (now: number) => ({
  metadata: { annotations: { [cdiAnnotations.lastUseTime]: new Date(now).toISOString() } },
});

/** Versions of a cron record their last use, so that garbage collection removes those in use last. */
export const touch = ({ claim, restored }: ReadyOrigin, { now }: PlanContext): readonly Action[] => {
  const used = claim ?? restored;
  if (used?.metadata.labels?.[cdiLabels.cron] === undefined || !isUseDue(used, now)) return [];
  const change = useMark(now);
  if (claim !== undefined) return [patch(persistentVolumeClaims, claim, change)];
  return restored === undefined ? [] : [patch(volumeSnapshots, restored, change)];
};

type Choice = Extract<CloneChoice, { is: 'chosen' }>;

const needsSnapshot = ({ strategy, viaSnapshot }: Choice, { origin, sourceSnapshot }: ObservedClone): boolean =>
  (viaSnapshot === true || (strategy === 'snapshot' && origin.snapshot === undefined)) &&
  sourceSnapshot?.status?.readyToUse !== true;

/** A copy Job reads from a snapshot. */
const snapshotRead = (
  { strategy, viaSnapshot }: Choice,
  { origin, sourceSnapshot }: ObservedClone,
): VolumeSnapshot | undefined => {
  if (viaSnapshot === true) return sourceSnapshot;
  return strategy === 'copy' && origin.claim === undefined ? origin.restored : undefined;
};

type Reading = Choice & { readonly read: VolumeSnapshot | undefined };

const copiedFrom = ({ ref }: Filled, { read }: Reading, { claim, clone }: ReadyOrigin): CloneRecord['from'] => {
  const { volumeMode } = clone;
  if (read !== undefined) return { name: restoredName(ref, read), volumeMode, restored: true };
  return claim && { name: claim.metadata.name, volumeMode };
};

const labelsOf = ({ claim, restored }: ReadyOrigin): Pick<CloneRecord, 'labels'> => {
  const labels = travellingLabels((claim ?? restored)?.metadata.labels);
  return Object.keys(labels).length === 0 ? {} : { labels };
};

const recordFor = (owner: Filled, choice: Reading, origin: ReadyOrigin): CloneRecord => ({
  strategy: choice.strategy,
  because: choice.because,
  ...(choice.strategy === 'copy' ? { from: copiedFrom(owner, choice, origin) } : {}),
  ...labelsOf(origin),
  population: origin.population ?? {
    inspection:
      origin.clone.holdsFiles === true
        ? filesFound
        : { format: 'raw', compression: 'none', virtualSize: origin.clone.diskBytes },
    digests: {},
  },
});

const dataSourceOf = (
  owner: Filled,
  { strategy }: CloneRecord,
  origin: ReadyOrigin,
): TypedLocalReference | undefined => {
  switch (strategy) {
    case 'copy':
      return undefined;
    case 'csi-clone':
      return { kind: 'PersistentVolumeClaim', name: origin.claim?.metadata.name ?? '' };
    case 'snapshot':
      return {
        apiGroup: 'snapshot.storage.k8s.io',
        kind: 'VolumeSnapshot',
        name: origin.snapshot ?? cloneName(owner),
      };
  }
};

const planSourceSnapshot = (owner: Filled, { origin, sourceSnapshot }: ObservedClone, context: PlanContext): Plan => {
  const name = cloneName(owner);
  const error = sourceSnapshot?.status?.error?.message;
  const step =
    error === undefined
      ? { reason: 'Snapshotting', message: `taking a snapshot of ${origin.clone.what}` }
      : { reason: 'SnapshotFailed', message: `the snapshot of ${origin.clone.what} is in error: ${error}` };
  const next = { ...owner.state, children: { ...owner.state.children, snapshot: name } };
  const { snapshotClass = '' } = origin.clone;
  const claimName = origin.claim?.metadata.name ?? '';
  return {
    actions:
      sourceSnapshot === undefined
        ? [create(volumeSnapshots, buildSnapshot(owner.ref, name, claimName, snapshotClass))]
        : [],
    state: storageWaitingState(
      owner,
      next,
      { ...step, phase: 'Cloning', child: sourceSnapshot, isComplaining: error !== undefined },
      context,
    ),
  };
};
