// What stands on a backing image: volumes of its class, which lose their ground when it goes. Called where it is to be removed.
import { type StorageClass, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { Image } from '#shared/backends/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** Enough to be named in a message. */
const most = 3;

/** The first few, as `PersistentVolumeClaim default/root`. Claims of all namespaces are gone through page by page. */
export const findUsers = async (
  kube: KubeClient,
  { state }: Pick<Image, 'state'>,
  storageClass: StorageClass | undefined,
): Promise<readonly string[]> => {
  const className = storageClass?.metadata.name ?? state.storageClassName;
  if (className === undefined) return [];
  const users: string[] = [];
  for await (const { kind, metadata, spec } of kube.listAll(persistentVolumeClaims)) {
    if (spec.storageClassName === className) users.push(`${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
    if (users.length >= most) break;
  }
  return users;
};
