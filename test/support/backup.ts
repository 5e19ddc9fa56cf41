// Two clusters and one object store, for flows of backups.
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateBucketCommand, S3Client as Sdk } from '@aws-sdk/client-s3';
import { isTrue } from '#shared/api/conditions.ts';
import { configMaps, secrets } from '#shared/api/foreign/core.ts';
import type { ObjectKey, ResourceType } from '#shared/api/object.ts';
import type { BackupImageObject } from '#shared/backup/image.ts';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { createHttpClient } from '#shared/clients/http/client.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createS3Client } from '#shared/clients/s3/client.ts';
import { createBucketStore } from '#shared/clients/store/bucket.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { type ObjectStore, type ObjectStoreOptions, startObjectStore } from '#local-cluster/object-store/server.ts';

export const backupBucket = 'backups';
export const backupCredentials = { accessKeyId: 'backup-user', secretAccessKey: 'backup-s3cret-key' };

export interface BackupStore {
  readonly server: ObjectStore;
  readonly store: Store;
  readonly close: () => Promise<void>;
}

/** A separate store that outlives the clusters. Accepts more than one user and more than one address. */
export const startBackupStore = async (
  dir: string,
  { credentials = [], domain, host }: Partial<Pick<ObjectStoreOptions, 'credentials' | 'domain' | 'host'>> = {},
): Promise<BackupStore> => {
  const server = await startObjectStore({
    dir,
    credentials: [backupCredentials, ...credentials],
    ...(domain === undefined ? {} : { domain }),
    ...(host === undefined ? {} : { host }),
  });
  const sdk = new Sdk({
    endpoint: server.url,
    region: server.region,
    forcePathStyle: true,
    credentials: backupCredentials,
  });
  await sdk.send(new CreateBucketCommand({ Bucket: backupBucket }));
  sdk.destroy();
  const http = createHttpClient({ isRefused: createAddressPolicy([`${host ?? '127.0.0.1'}/32`]), idleMs: 30_000 });
  const s3 = createS3Client({
    http,
    endpoint: server.url,
    region: server.region,
    pathStyle: true,
    credentials: backupCredentials,
  });
  return {
    server,
    store: createBucketStore(s3, backupBucket),
    close: async () => {
      await http.close();
      await server.close();
    },
  };
};

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** The Secret of the target, as created by an operator or the owner of a namespace. */
export const targetSecret = (namespace: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'backup-target', namespace },
  data: {
    accessKeyId: base64(` ${backupCredentials.accessKeyId}\n`),
    secretKey: base64(`${backupCredentials.secretAccessKey}\n`),
  },
});

/** Fields of the ConfigMap. */
export const targetFields = ({ url, region }: Pick<ObjectStore, 'url' | 'region'>): Record<string, string> => ({
  type: 's3',
  endpoint: url,
  bucketName: backupBucket,
  bucketRegion: region,
  refreshIntervalInSeconds: '1',
});

/** Configures the target of a cluster, with the ConfigMap and Secret of an operator, and creates the Secret in `namespaces`. */
export const setTarget = async (
  kube: KubeClient,
  data: Record<string, string>,
  namespaces: readonly string[] = ['default'],
): Promise<void> => {
  for (const namespace of ['bullion-system', ...namespaces]) {
    if ((await kube.get(secrets, { namespace, name: 'backup-target' })) === undefined)
      await kube.create(secrets, targetSecret(namespace));
  }
  const metadata = { name: 'backup-target', namespace: 'bullion-system' };
  const present = await kube.get(configMaps, metadata);
  const next = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
  await (present === undefined
    ? kube.create(configMaps, next)
    : kube.replace(configMaps, { ...next, metadata: present.metadata }));
};

/** Without its target a cluster keeps nothing, and asks for nothing. */
export const removeTarget = async (kube: KubeClient): Promise<void> => {
  const key = { namespace: 'bullion-system', name: 'backup-target' };
  for (const type of [configMaps, secrets] as const) await kube.delete(type as ResourceType, key);
};

export const isReady = ({ status }: Pick<BackupImageObject, 'status'>): boolean => isTrue(status?.conditions, 'Ready');

/** The backup is complete. */
export const isKept = ({ status }: Pick<BackupImageObject, 'status'>): boolean =>
  ['DataReady', 'MetadataReady'].every((type) => isTrue(status?.conditions, type));

/** Restored, ready to use, and backed up. */
export const isBack = (image: BackupImageObject): boolean => isReady(image) && isKept(image);

const untilMs = 300_000;

/** Waits for an image in that state; fails with its last status. */
export const untilImage = async (
  kube: KubeClient,
  type: ResourceType<BackupImageObject>,
  key: ObjectKey,
  isSo: (image: BackupImageObject) => boolean,
): Promise<BackupImageObject> => {
  const deadline = Date.now() + untilMs;
  for (;;) {
    const image = await kube.get(type, key);
    if (image !== undefined && isSo(image)) return image;
    if (Date.now() > deadline) throw new Error(`image ${key.name} is still ${JSON.stringify(image?.status, null, 1)}`);
    await sleep(200);
  }
};
