// Reconciles exports of volumes. Called by registry.ts.
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import {
  jobs,
  kubeEvents,
  namespaces,
  persistentVolumeClaims,
  pods,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type VirtualMachineVolumeExport, volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import { finalizers } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { type ImageState, isFinal, isRetryDue } from '#shared/populate/filled.ts';
import { follow, jobMatters, isSnapshotDecided } from '#shared/populate/watched-child.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';
import { fillable, noObjectStore, refusals } from '#shared/resources/fillable.ts';
import { toExport, toExportStatus } from '#shared/resources/volume-export/dialect.ts';
import { type VolumeExport, locationOf } from './rules.ts';
import { removeExport } from '#shared/resources/volume-export/failing.ts';
import { planExport } from '#shared/resources/volume-export/plan.ts';
import { type ObservedExport, checkExport, claimNameOf } from '#shared/resources/volume-export/observed.ts';
import { refusalOfFaults } from '#shared/resources/reconciler.ts';

const watchedChildren = [
  follow(jobs, ['create', 'delete'], jobMatters),
  follow(volumeSnapshots, ['create', 'delete'], isSnapshotDecided),
  // Bound by the Job that mounts it; its deletion is relevant for a retry.
  follow(persistentVolumeClaims, ['create', 'patch', 'delete'], () => false),
];

const reads = [
  pods,
  storageClasses,
  storageProfiles,
  volumeSnapshotClasses,
  kubeEvents,
  namespaces,
] as readonly unknown[];

export const volumeExportReconciler: Reconciler<VirtualMachineVolumeExport, VolumeExport> = {
  ...fillable,
  kind: volumeExportKind,
  read: toExport,
  toStatus: (object, resource, state, now) => toExportStatus(object, resource, state, now),
  watchedChildren: () => watchedChildren,
  reads: () => reads as readonly ResourceType[],
  // The pod of a local export is not waited for.
  makes: [{ type: pods, verbs: ['create', 'delete'] }],
  refusalOf: (resource, _, { objectStore }) => {
    const { destination } = resource;
    const hasNoStore = destination?.is === 'store' && destination.object.type === 'object' && objectStore === undefined;
    return refusalOfFaults(resource) ?? (hasNoStore ? noObjectStore('the destination') : undefined);
  },
  // An export aborts unfinished uploads of its key: there must be only one per key, and the store has no namespaces.
  uniqueNameOf: ({ destination, state }) =>
    destination?.is === 'store' || destination?.is === 'registry'
      ? {
          name: `${destination.is === 'store' ? 'object' : 'image'} ${locationOf(destination)}`,
          what: 'destination',
          reason: refusals.destination,
          isDue: state.children === undefined,
          isEverywhere: true,
        }
      : undefined,
  plannerOf: () => ({
    check: checkExport,
    plan: (resource, observed, context) => planExport(resource, observed as ObservedExport, context),
    remove: (resource, observed, context) => removeExport(resource, observed as ObservedExport, context),
  }),
  finalizerOf: ({ destination }) => (destination?.is === 'store' ? finalizers.export : undefined),
  links: {
    waitsFor: [persistentVolumeClaims.kind],
    sourceOf: ({ source, ref }) => ({
      groupKind: persistentVolumeClaims.kind,
      namespace: ref.namespace ?? 'default',
      name: claimNameOf(source),
    }),
    offersOf: () => [],
  },
  announcementOf: (): undefined => undefined,
  isSettled: (resource) => !resource.deleting && isFinal(resource.state as ImageState) && !isRetryDue(resource),
};
