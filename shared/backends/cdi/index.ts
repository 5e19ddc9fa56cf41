// The cdi backend: a DataVolume for each image, of an installed CDI or our own, with its claim as golden volume.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import {
  type PersistentVolumeClaim,
  jobs,
  kubeEvents,
  persistentVolumeClaims,
  pods,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { Backend } from '#shared/backends/backend.ts';
import { initialize, madeState, planDelete } from '#shared/backends/cdi/plan.ts';
import { cdiSources } from '#shared/backends/cdi/manifests.ts';
import { hasNews } from '#shared/backends/cdi/following.ts';
import { type ObservedCdi, check } from '#shared/backends/cdi/observed.ts';
import { follow, jobMatters, isLeaving } from '#shared/populate/watched-child.ts';

const reads = [pods, storageClasses, storageProfiles, kubeEvents, harvesterImageKind.type] as readonly unknown[];

export const cdi: Backend<ObservedCdi> = {
  // The source of a DataVolume has no field for an identity.
  capabilities: { sources: cdiSources, passes: ['secretRef', 'certConfigMap'] },
  check,
  initialize,
  updateVirtualSize: (image, { dataVolume, claim }) =>
    image.state.phase === 'Available' &&
    image.state.inspection?.virtualSize === undefined &&
    dataVolume?.status?.phase === 'Succeeded' &&
    claim !== undefined
      ? madeState(image, claim)
      : undefined,
  delete: planDelete,
  rootDiskOf: ({ ref }) => ({ is: 'copy', volume: ref.name }),
  watchedChildren: [
    follow<DataVolume>(dataVolumeKind.type, ['create', 'delete'], hasNews),
    follow(jobs, ['create', 'delete'], jobMatters),
    follow<PersistentVolumeClaim>(
      persistentVolumeClaims,
      ['create', 'patch', 'delete'],
      (claim) => claim.status?.phase === 'Lost' || isLeaving(claim),
    ),
  ],
  reads: reads as readonly ResourceType[],
  validator: { create: () => [], update: () => [], delete: () => [] },
  mutator: { classParameters: () => undefined },
};
