// Completes the `storage` of a DataVolume from class and StorageProfile at its creation, so that its author sees the values. A clone is not
// completed: its class and modes depend on its source.
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { type StorageClass, storageClasses } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { claimSetsOf, completeClaim, defaultClassOf } from '#shared/populate/storage/profile.ts';
import type { DefaultRule } from '#shared/resources/rule.ts';

type Storage = NonNullable<DataVolume['spec']['storage']>;
type Fill = DefaultRule<DataVolume>['fill'];

/** More classes than any cluster has. */
const pageSize = 200;

const isMadeFromVolume = ({ spec: { source, sourceRef } }: DataVolume): boolean =>
  sourceRef !== undefined || source?.pvc !== undefined || source?.snapshot !== undefined;

/** The named class, or the default one. */
export const classOf = async (
  kube: KubeClient,
  storageClassName: string | undefined = '',
  isDisk: boolean,
): Promise<StorageClass | undefined> =>
  storageClassName === ''
    ? defaultClassOf((await kube.list(storageClasses, { limit: pageSize })).items, isDisk)
    : kube.get(storageClasses, { name: storageClassName });

/** A class that does not exist yet, or offers nothing, completes nothing: the volume waits for it, and is completed then. */
const complete = async (kube: KubeClient, storage: Storage, isDisk: boolean): Promise<Storage> => {
  const storageClass = await classOf(kube, storage.storageClassName, isDisk);
  if (storageClass === undefined) return storage;
  const { name } = storageClass.metadata;
  const profile = await kube.get(storageProfiles, { name });
  const { volumeMode, accessModes = [] } = storage;
  const asked = {
    ...(volumeMode === undefined ? {} : { volumeMode }),
    ...(accessModes.length === 0 ? {} : { accessModes }),
  };
  const made = completeClaim(claimSetsOf(storageClass, profile), asked);
  return {
    ...storage,
    storageClassName: name,
    ...(made === undefined ? {} : { volumeMode: made.volumeMode, accessModes: [...made.accessModes] }),
  };
};

/** Values decided once are kept: a client that replaces the object with its own manifest does not know them. */
const keep = (storage: Storage, { storageClassName, volumeMode, accessModes }: Storage): Storage => ({
  ...(storageClassName === undefined ? {} : { storageClassName }),
  ...(volumeMode === undefined ? {} : { volumeMode }),
  ...(accessModes === undefined ? {} : { accessModes }),
  ...storage,
});

/** The files of an archive need a file system, whatever the class prefers. */
const forFiles = { volumeMode: 'Filesystem' } as const;

const fillStorage: Fill = async ({ object, before, kube }) => {
  const { storage } = object.spec;
  if (storage === undefined || isMadeFromVolume(object)) return object;
  if (before !== undefined) {
    const { storage: kept } = before.spec;
    return kept === undefined ? object : { ...object, spec: { ...object.spec, storage: keep(storage, kept) } };
  }
  const isDisk = object.spec.contentType !== 'archive';
  const asked = isDisk ? storage : { ...forFiles, ...storage };
  return { ...object, spec: { ...object.spec, storage: await complete(kube, asked, isDisk) } };
};

export const dataVolumeDefaults: readonly DefaultRule<DataVolume>[] = [{ id: 'storage', fill: fillStorage }];
