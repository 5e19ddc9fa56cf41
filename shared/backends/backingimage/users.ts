// What stands on a backing image: volumes of its class and backups of such, which lose their ground when it goes. Called where it is to be removed.
import { virtualMachineBackups } from '#shared/api/foreign/backup.ts';
import { type StorageClass, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { Image } from '#shared/backends/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

/** Enough to be named in a message. */
const most = 3;

/** The first few, as `PersistentVolumeClaim default/root`. Those of all namespaces are gone through page by page. */
export const findUsers = async (
  kube: KubeClient,
  { state }: Pick<Image, 'state'>,
  storageClass: StorageClass | undefined,
): Promise<readonly string[]> => {
  const className = storageClass?.metadata.name ?? state.storageClassName;
  if (className === undefined) return [];
  const volumes = await firstFew(
    kube.listAll(persistentVolumeClaims),
    ({ spec: { storageClassName } }) => storageClassName === className,
  );
  return volumes.length >= most ? volumes : [...volumes, ...(await findBackups(kube, className))].slice(0, most);
};

/** Volumes come back from them in the class they had, which takes the image (harvester/backups-of-image). There are none where Harvester is not. */
const findBackups = async (kube: KubeClient, className: string): Promise<readonly string[]> => {
  try {
    return await firstFew(kube.listAll(virtualMachineBackups), ({ status }) =>
      (status?.volumeBackups ?? []).some(
        (volume) => volume.persistentVolumeClaim?.spec?.storageClassName === className,
      ),
    );
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
};

const firstFew = async <T extends KubeObject>(
  objects: AsyncIterable<T>,
  isOne: (object: T) => boolean,
): Promise<readonly string[]> => {
  const found: string[] = [];
  for await (const object of objects) {
    if (isOne(object)) found.push(`${object.kind} ${object.metadata.namespace ?? ''}/${object.metadata.name}`);
    if (found.length >= most) break;
  }
  return found;
};
