// The object store as part of the local cluster: its credentials, their Secret for images, and the settings of functions.
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { applyObjects } from '#local-cluster/install.ts';
import { type ObjectStore, type StoredChange, startObjectStore } from '#local-cluster/object-store/server.ts';
import type { StoreCredentials } from '#local-cluster/object-store/signature.ts';
import type { Secret } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

/** Name of the Secret in each namespace whose images come from the object store. */
const secretName = 'object-store';
/** Default namespace; users copy it to other namespaces, as in production. */
const secretNamespace = 'default';

export interface LocalObjectStore extends ObjectStore {
  readonly accessKeyId: string;
  /** In the format of the AWS tools (AWS_SHARED_CREDENTIALS_FILE). */
  readonly credentialsFile: string;
  /** Settings of functions for this store. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sends bucket notifications in MinIO's format until the store closes. Answers are not awaited. */
  readonly notify: (send: (body: object) => void) => void;
}

export interface LocalObjectStoreOptions {
  readonly kube: KubeClient;
  readonly dataDir: string;
  readonly port: number;
  readonly log: Logger;
}

export const startLocalObjectStore = async (options: LocalObjectStoreOptions): Promise<LocalObjectStore> => {
  const dir = join(options.dataDir, 'object-store');
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const credentialsFile = join(dir, 'credentials');
  const credentials = await ensureCredentials(credentialsFile);
  let send: ((body: object) => void) | undefined;
  const store = await startObjectStore({
    onChange: (change) => send?.(toNotification(change)),
    dir: join(dir, 'buckets'),
    port: options.port,
    credentials: [credentials],
    onError: (error) => options.log.error('the object store failed', { error: messageOf(error) }),
  });
  try {
    await applyObjects(options.kube, [secretOf(credentials)]);
  } catch (error) {
    await store.close();
    throw error;
  }
  return {
    ...store,
    accessKeyId: credentials.accessKeyId,
    credentialsFile,
    notify: (sender) => void (send = sender),
    environment: {
      IMPORT_RULES: JSON.stringify([importRule]),
      OBJECT_STORE_ENDPOINT: store.url,
      OBJECT_STORE_REGION: store.region,
      OBJECT_STORE_SECRET: secretName,
    },
  };
};

/** Image files in this bucket are imported. */
const importRule = { bucket: 'images', namespace: secretNamespace, storageClassName: 'local' };

const toNotification = ({ bucket, key, eventName }: StoredChange): object => ({
  EventName: eventName,
  Key: `${bucket}/${key}`,
  Records: [
    {
      eventVersion: '2.0',
      eventSource: 'minio:s3',
      eventName,
      // Form-encoded, as in real notifications.
      s3: { bucket: { name: bucket }, object: { key: encodeURIComponent(key).replaceAll('%20', '+') } },
    },
  ],
});

const parseCredentials = (text: string): StoreCredentials | undefined => {
  const accessKeyId = /^aws_access_key_id = (\S+)$/m.exec(text)?.[1];
  const secretAccessKey = /^aws_secret_access_key = (\S+)$/m.exec(text)?.[1];
  return accessKeyId === undefined || secretAccessKey === undefined ? undefined : { accessKeyId, secretAccessKey };
};

/** Created once, then read from the file. */
const ensureCredentials = async (file: string): Promise<StoreCredentials> => {
  const present = parseCredentials(await readFile(file, 'utf8').catch(() => ''));
  if (present !== undefined) return present;
  const made = { accessKeyId: randomBytes(10).toString('hex'), secretAccessKey: randomBytes(24).toString('base64url') };
  const text = `[default]\naws_access_key_id = ${made.accessKeyId}\naws_secret_access_key = ${made.secretAccessKey}\n`;
  await writeFile(`${file}.part`, text, { mode: 0o600 });
  await rename(`${file}.part`, file);
  return made;
};

const base64 = (text: string): string => Buffer.from(text).toString('base64');

const secretOf = ({ accessKeyId, secretAccessKey }: StoreCredentials): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: secretName, namespace: secretNamespace },
  data: { accessKeyId: base64(accessKeyId), secretKey: base64(secretAccessKey) },
});
