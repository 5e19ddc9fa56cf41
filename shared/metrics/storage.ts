// What is told of storage classes and of who waits for one, under the names and labels of the original, whose alerts they are for.
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type StorageProfile, storageProfileKind } from '#shared/api/cdi/storage-profile.ts';
import { type StorageClass, nodes, storageClasses } from '#shared/api/foreign/core.ts';
import type { Counter } from '#shared/metrics/counter.ts';
import { gauge, type Metric } from '#shared/metrics/metric.ts';
import { defaultClassOf, isDefaultClass, isVirtDefaultClass } from '#shared/populate/profile.ts';

const info = gauge('kubevirt_cdi_storageprofile_info', 'What the profile of a storage class says: 1 for each class.');
const pending = gauge('kubevirt_cdi_datavolume_pending', 'DataVolumes that wait for a default storage class.');

const clones = new Set(['snapshot', 'csi-clone']);

/** On a single node, volumes that many nodes can write gain nothing, and their lack is nothing to mend. */
const infoOf = (storageClass: StorageClass, { status }: StorageProfile, isSingleNode: boolean): Metric => {
  const { claimPropertySets = [], cloneStrategy = '' } = status ?? {};
  const rwx = claimPropertySets.some(({ accessModes }) => accessModes.includes('ReadWriteMany'));
  const smartclone = clones.has(cloneStrategy);
  return info(1, {
    storageclass: storageClass.metadata.name,
    provisioner: storageClass.provisioner,
    complete: String(claimPropertySets.length > 0),
    default: String(isDefaultClass(storageClass)),
    virtdefault: String(isVirtDefaultClass(storageClass)),
    rwx: String(rwx),
    smartclone: String(smartclone),
    degraded: String(!smartclone || (!rwx && !isSingleNode)),
  });
};

/** Names no class and has no volume yet. */
const isWaiting = ({ spec, status }: DataVolume): boolean =>
  ((spec.pvc ?? spec.storage)?.storageClassName ?? '') === '' && ['', 'Pending'].includes(status?.phase ?? '');

export const createStorageCounter = (): Counter => {
  const profiles = new Map<string, StorageProfile>();
  const classes: StorageClass[] = [];
  let nodeCount = 0;
  let waiting = 0;
  return {
    visit: (object) => {
      if (object.kind === storageProfileKind.type.kind) profiles.set(object.metadata.name, object);
      if (object.kind === storageClasses.kind) classes.push(object as StorageClass);
      if (object.kind === nodes.kind) nodeCount += 1;
      if (object.kind === dataVolumeKind.type.kind && isWaiting(object as DataVolume)) waiting += 1;
    },
    metrics: () => [
      ...classes.flatMap((storageClass) => {
        const profile = profiles.get(storageClass.metadata.name);
        // Without a status nobody has looked at it yet: nothing is known of it.
        return profile?.status === undefined ? [] : [infoOf(storageClass, profile, nodeCount === 1)];
      }),
      pending(defaultClassOf(classes) === undefined ? waiting : 0),
    ],
  };
};
