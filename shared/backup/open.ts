// Finds and opens the backup target of a cluster. Read again each time, so that new credentials apply at once.
import { harvesterSettings } from '#shared/api/foreign/backup.ts';
import { configMaps, secretTexts, secrets } from '#shared/api/foreign/core.ts';
import { longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { systemNamespace } from '#shared/api/names.ts';
import {
  type NfsTarget,
  type ReadTarget,
  type BackupTarget,
  readSettingValue,
  readTarget,
} from '#shared/backup/target.ts';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { createHttpClient } from '#shared/clients/http/client.ts';
import type { Proxies } from '#shared/clients/http/proxy.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { openObjectStore } from '#shared/clients/cloud/store.ts';
import type { CloudEndpoints } from '#shared/clients/cloud/endpoints.ts';
import { createBucketStore } from '#shared/clients/store/bucket.ts';
import { createFolderStore } from '#shared/clients/store/folder.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Name of the ConfigMap and the Secret of the target, in our own namespace. */
export const targetName = 'backup-target';
/** The Secret with the credentials of Harvester's setting. */
export const releasedSecret = { namespace: longhornNamespace, name: 'harvester-backup-target-secret' } as const;

export interface OpenedStore {
  readonly store: Store;
  readonly close: () => Promise<void>;
}
export type OpenTarget = (target: BackupTarget) => OpenedStore;

const decodedSecret = async (
  kube: KubeClient,
  key: { readonly namespace: string; readonly name: string },
): Promise<Readonly<Record<string, string>> | undefined> => {
  const secret = await kube.get(secrets, key);
  return secret && secretTexts(secret);
};

const settingOf = async (kube: KubeClient): Promise<string | undefined> => {
  const setting = await kube.get(harvesterSettings, { name: targetName });
  return setting?.value || setting?.default;
};

/** The ConfigMap takes precedence over Harvester's setting. Throws errors of the API. */
export const findTarget = async (kube: KubeClient): Promise<ReadTarget> => {
  const own = { namespace: systemNamespace, name: targetName };
  const written = await kube.get(configMaps, own);
  if (written !== undefined) {
    const secret = await decodedSecret(kube, own);
    return readTarget({ where: `ConfigMap ${own.namespace}/${own.name}`, fields: written.data ?? {}, secret });
  }
  const value = await settingOf(kube);
  return value === undefined || value === ''
    ? { is: 'none' }
    : readSettingValue(value, await decodedSecret(kube, releasedSecret));
};

/** Idle timeout of the store in milliseconds. */
const idleMs = 10_000;

export interface OpenSettings {
  readonly allowedAddresses: readonly string[];
  readonly proxies?: Proxies | undefined;
  /** Default: the public ones. */
  readonly clouds?: CloudEndpoints | undefined;
  /** Folder with mounted NFS exports: `<folder>/<server>/<path>`. */
  readonly nfsFolder?: string | undefined;
}

/** Mount path of an export. */
export const exportFolder = (nfsFolder: string, { server, path }: Pick<NfsTarget, 'server' | 'path'>): string =>
  `${nfsFolder}/${server}${path}`;

export const createOpenTarget =
  ({ allowedAddresses, proxies, clouds, nfsFolder }: OpenSettings): OpenTarget =>
  (target) => {
    if (target.type === 'nfs') {
      if (nfsFolder === undefined)
        throw new InvalidInput(
          `${target.name} cannot be read: mount the export into this function, and set BACKUP_NFS_FOLDER to the folder`,
        );
      return {
        store: createFolderStore(exportFolder(nfsFolder, target)),
        close: () => Promise.resolve(),
      };
    }
    const { endpoint, region, bucket, pathStyle, secret, ca } = target;
    const plain = { isRefused: createAddressPolicy(allowedAddresses), idleMs, proxies };
    const { s3, close } = openObjectStore(
      { http: createHttpClient({ ...plain, ca }), endpoint, region, pathStyle },
      { secret, secretName: targetName, use: 'write' },
      { asks: createHttpClient(plain), now: Date.now, clouds },
    );
    return { store: createBucketStore(s3, bucket), close };
  };
