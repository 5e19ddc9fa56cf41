// Reconciles a kind of volume. Called by registry.ts, once for each dialect.
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  jobs,
  kubeEvents,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
  csiDrivers,
} from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses, volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { finalizers } from '#shared/api/names.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type ImageState, isFinal, isRetryDue } from '#shared/populate/filled.ts';
import { follow, jobMatters, isLeaving, isSnapshotDecided, type WatchedChild } from '#shared/populate/watched-child.ts';
import type { Note } from '#shared/resources/transitions.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';
import { fillable } from '#shared/resources/fillable.ts';
import { mayLieElsewhere, type Orphans, readOrphans } from '#shared/populate/volume/elsewhere-observed.ts';
import { removeOrphans } from '#shared/populate/volume/elsewhere.ts';
import { contentLinkOf, contentGroupKind } from '#shared/resources/fillable.ts';
import { contentOfVolume } from '#shared/populate/volume/volume.ts';
import { isPrimeDue, isPrimed } from '#shared/populate/volume/prime.ts';
import { planVolume } from '#shared/populate/volume/plan.ts';
import { checkVolume } from '#shared/populate/volume/check.ts';
import type { ObservedVolume, SourceReaders } from '#shared/populate/volume/observed.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import { isFromServer } from '#shared/populate/source.ts';
import { populationOf } from '#shared/populate/population.ts';
import { type Volume, bytesOf } from '#shared/populate/volume/volume.ts';
import { refusalOfFaults } from '#shared/resources/reconciler.ts';

/** Translates a kind to and from the internal model of a volume. */
export interface VolumeDialect<T extends KubeObject> {
  readonly kind: ServedKind<T>;
  /** Kinds, as `<kind>.<group>`, that it can be made from. */
  readonly sourceKinds: readonly string[];
  toVolume(object: T): Volume;
  toStatus(object: T, volume: Volume, state: ImageState, now: string): object;
  /** Events that its clients look for, in addition to ours. */
  notesOf?(before: ImageState, after: ImageState, volume: Volume): readonly Note[];
}

const isBound = ({ status }: PersistentVolumeClaim): boolean => status?.phase === 'Bound';

/** Bound: restored, cloned, or used by its first consumer. Marked: by our own write. Due: filled elsewhere, and its consumer is there. */
const claims = follow<PersistentVolumeClaim>(
  persistentVolumeClaims,
  ['create', 'patch', 'delete'],
  (claim) =>
    (isBound(claim) && populationOf(claim) === undefined) ||
    claim.status?.phase === 'Lost' ||
    isLeaving(claim) ||
    isPrimeDue(claim),
);

/** A claim of another client that is filled by an upload: its event arrives when it gets our label, and it may be bound only by us. */
const isTakenOver = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[cdiAnnotations.uploadTarget] !== undefined && metadata.ownerReferences === undefined;

const watchedChildren: readonly WatchedChild[] = [
  follow(jobs, ['create', 'delete'], jobMatters),
  {
    ...claims,
    matters: (object, change) => claims.matters(object, change) || (change === 'add' && isTakenOver(object)),
  },
  follow(volumeSnapshots, ['create', 'delete'], isSnapshotDecided),
  // Labelled only during a handover: its old claim is gone.
  follow<PersistentVolume>(persistentVolumes, ['patch'], ({ status }) => status?.phase === 'Released'),
];

/** A Job fills this claim, not its storage: the claim is bound for the Job, whose events report the rest. */
const isMovedBy = ({ state, claim: { name } }: Volume, child: KubeObject): boolean => {
  if (child.kind !== persistentVolumeClaims.kind || child.metadata.name !== name) return true;
  const claim = child as PersistentVolumeClaim;
  const isMine = recordOf(claim) !== undefined || isPrimed(claim);
  return state.children?.job === undefined || !isBound(claim) || isLeaving(claim) || isMine;
};

/** Children in other namespaces are found by label. */
const listed = [jobs, persistentVolumeClaims, volumeSnapshots, persistentVolumes] as readonly unknown[];

const reads = [
  pods,
  storageClasses,
  csiDrivers,
  storageProfiles,
  volumeSnapshotClasses,
  volumeSnapshotContents,
  kubeEvents,
  ...listed,
].map((type) => type as ResourceType);

const claimOf = ({ ref, claim }: Volume) => ({
  groupKind: persistentVolumeClaims.kind,
  namespace: ref.namespace ?? 'default',
  name: claim.name,
});

const contentLink = (volume: Volume) => contentLinkOf(volume.ref, contentOfVolume(volume));

export const volumeReconciler = <T extends KubeObject>(
  dialect: VolumeDialect<T>,
  readers: SourceReaders,
): Reconciler<T, Volume> => ({
  ...fillable,
  kind: dialect.kind,
  read: (object) => dialect.toVolume(object),
  toStatus: (object, volume, state, now) => dialect.toStatus(object, volume, state, now),
  notesOf: (before, after, volume) => [
    ...fillable.notesOf(before, after, volume),
    ...(dialect.notesOf?.(before, after, volume) ?? []),
  ],
  watchedChildren: () => watchedChildren,
  reads: () => reads,
  refusalOf: refusalOfFaults,
  isMovedBy,
  plannerOf: () => ({
    check: (kube, volume) => (volume.deleting ? readOrphans(kube, volume) : checkVolume(kube, volume, readers)),
    plan: (volume, observed, context) => planVolume(volume, observed as ObservedVolume, context),
    // Its children here have an owner reference, and their order does not matter.
    remove: (volume, observed) => ({
      actions: removeOrphans(volume, observed as Orphans),
      state: volume.state,
      removed: true,
    }),
  }),
  fetches: (volume) => isFromServer(bytesOf(volume)),
  finalizerOf: (volume) => (mayLieElsewhere(volume) ? finalizers.clone : undefined),
  links: {
    waitsFor: [...dialect.sourceKinds, contentGroupKind],
    sourceOf: (volume) => (volume.source?.type === 'object' ? volume.source : contentLink(volume)),
    offersOf: (volume) =>
      [claimOf(volume), contentLink(volume), ...(volume.isCopy?.wakes ?? [])].filter((offer) => offer !== undefined),
  },
  // Clients that read only the claim wait for its annotation that an upload can start.
  isPassDue: ({ claim, state }, { phase }) =>
    claim.listening !== undefined && state.phase === 'Pending' && phase !== 'Pending',
  // Programs watch the object itself.
  announcementOf: () => undefined,
  // What an original controller left is taken over first.
  isSettled: (volume) =>
    !volume.deleting && volume.comesFromOriginal !== true && isFinal(volume.state) && !isRetryDue(volume),
});
