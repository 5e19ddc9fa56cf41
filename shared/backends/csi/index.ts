// The csi backend: a golden volume of any CSI driver, filled by our transfer Job, with a snapshot where the driver can.
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { kubeEvents, pods, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { Backend } from '#shared/backends/backend.ts';
import type { Image, ImageState } from '#shared/backends/image.ts';
import { initialize } from '#shared/backends/csi/plan.ts';
import { planDelete } from '#shared/backends/csi/removal.ts';
import { type ObservedCsi, check } from '#shared/backends/csi/observed.ts';
import { watchedChildren } from '#shared/backends/csi/watched-children.ts';
import { filledState } from '#shared/backends/csi/snapshotting.ts';
import { mutator, validator } from '#shared/backends/csi/validator.ts';
import { populationOf } from '#shared/populate/volume.ts';

const updateVirtualSize = (image: Image, observed: ObservedCsi): ImageState | undefined => {
  const population = populationOf(observed.volume);
  if (image.state.inspection?.virtualSize !== undefined || population === undefined || observed.volume === undefined) {
    return undefined;
  }
  return filledState(image, observed.volume, population);
};

export const csi: Backend<ObservedCsi> = {
  capabilities: {
    sources: ['http', 'object', 'upload', 'export-from-volume', 'clone', 's3', 'nfs'],
    copiesNearby: true,
  },
  check,
  initialize,
  updateVirtualSize,
  delete: planDelete,
  rootDiskOf: ({ childNames, state }) => ({
    is: 'copy',
    volume: state.children?.volume ?? childNames.volume,
    snapshot: state.children?.snapshot,
  }),
  watchedChildren,
  reads: [pods, storageClasses, storageProfiles, volumeSnapshotClasses, kubeEvents, harvesterImageKind.type].map(
    (type) => type as unknown as ResourceType,
  ),
  validator,
  mutator,
};
