// Credentials that are in no field of the served kinds: of the backup target, of the function that imports objects, and keys of encrypted volumes.
// Each is used where it is valid and where it is rejected.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { clusterLogOf } from '#infra/local/cluster.ts';
import { PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { kubeEvents, secretTexts, secrets, storageClasses } from '#shared/api/foreign/core.ts';
import type { HyperCloudImage } from '#shared/api/hypercloud/image.ts';
import { type BackupImageObject, imageTypes } from '#shared/backup/image.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { isKept, setTarget, startBackupStore, targetFields } from '#test/support/backup.ts';
import { type TestCluster, images, namespace } from '#test/support/cluster.ts';

export interface Stage {
  readonly cluster: TestCluster;
  /** A client of the store of the cluster. */
  readonly s3: S3Client;
  /** A URL of a disk, and one of a store that repeats all of its requests. */
  readonly disk: string;
  readonly echoStore: string;
  /** A credential that must not be found anywhere. */
  readonly plant: (what: string) => string;
  readonly note: (where: string, text: string) => void;
  /** Fails after three minutes. */
  readonly until: (what: string, isSo: () => Promise<boolean>) => Promise<void>;
}

const encode = (texts: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, btoa(value)]));

const writeSecret = async (
  { cluster: { kube } }: Stage,
  key: { readonly namespace: string; readonly name: string },
  texts: Readonly<Record<string, string>>,
): Promise<void> => {
  const present = await kube.get(secrets, key);
  const next = { apiVersion: 'v1', kind: 'Secret', metadata: { ...key, ...present?.metadata }, data: encode(texts) };
  await (present === undefined ? kube.create(secrets, next) : kube.replace(secrets, next));
};

const backUp = async (stage: Stage): Promise<void> => {
  const { cluster, plant, until } = stage;
  const [type] = imageTypes.filter(({ group }) => group.startsWith('hypercloud'));
  const pairOf = (what: string) => ({
    accessKeyId: plant(`the access key of the backup target (${what})`),
    secretKey: plant(`the secret key of the backup target (${what})`),
  });
  const [right, wrong] = [pairOf('right'), pairOf('wrong')];
  const credentials = [{ accessKeyId: right.accessKeyId, secretAccessKey: right.secretKey }];
  const backup = await startBackupStore(join(cluster.dataDir, 'store-of-backups'), { credentials });
  const useSecret = async (texts: Readonly<Record<string, string>>): Promise<void> => {
    for (const place of ['bullion-system', namespace])
      await writeSecret(stage, { namespace: place, name: 'backup-target' }, texts);
  };
  const statusOf = async (name: string) =>
    (await cluster.kube.get(type!, { namespace, name })) as BackupImageObject | undefined;
  const keep = (name: string): Promise<unknown> =>
    cluster.kube.create(images, {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata: { name, namespace },
      spec: { source: { http: stage.disk }, storageClassName: 'local', backup: true },
    } as HyperCloudImage);
  const isRefused = async (name: string): Promise<boolean> =>
    /access key|not allowed to do this/.test(JSON.stringify((await statusOf(name))?.status?.conditions));
  try {
    await useSecret(right);
    await setTarget(cluster.kube, targetFields(backup.server));
    await keep('kept');
    await until('an image is kept in the target', async () => {
      const image = await statusOf('kept');
      return image !== undefined && isKept(image);
    });
    await useSecret(wrong);
    await keep('unkept');
    await until('the target refuses wrong keys', () => isRefused('unkept'));
    await setTarget(cluster.kube, { ...targetFields(backup.server), endpoint: stage.echoStore });
    await keep('repeated');
    await until('the target repeats what it refuses', () => isRefused('repeated'));
    await setTarget(cluster.kube, { type: 's3', endpoint: `https://user:${plant('a password of the target')}@x` });
  } finally {
    await backup.close();
  }
};

const importObjects = async (stage: Stage): Promise<void> => {
  const { cluster, s3, plant, until } = stage;
  const key = { namespace, name: 'object-store' };
  const before = await cluster.kube.get(secrets, key);
  const put = (Key: string, Body: Buffer | string) => s3.send(new PutObjectCommand({ Bucket: 'images', Key, Body }));
  const eventOf = async (reason: string): Promise<boolean> =>
    (await cluster.kube.list(kubeEvents, { namespace })).items.some((event) => event.reason === reason);
  await put('mine.raw', Buffer.alloc(2 ** 20, 1));
  await until('an object becomes an image', async () =>
    (await cluster.kube.list(images, { namespace })).items.some(
      ({ metadata, status }) => metadata.name.startsWith('mine-') && status?.state === 'Available',
    ),
  );
  await put('broken.raw.json', '{');
  await put('broken.raw', 'x');
  await until('an object is refused', () => eventOf('ObjectRefused'));
  await writeSecret(stage, key, {
    accessKeyId: plant('a wrong access key of imports'),
    secretKey: plant('a wrong secret key of imports'),
  });
  await until('the store refuses wrong keys', async () =>
    /access key is unknown to the store/.test(await readFile(clusterLogOf(cluster.dataDir), 'utf8')),
  );
  await writeSecret(stage, key, secretTexts(before!));
};

/** The Secret itself passes through admission. */
const keepKeys = async (stage: Stage): Promise<void> => {
  const { cluster, plant, note } = stage;
  const key = { namespace, name: 'volume-key' };
  const texts = { CRYPTO_KEY_VALUE: plant('the key of encrypted volumes') };
  await writeSecret(stage, key, texts);
  await cluster.kube.create(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'encrypting' },
    provisioner: 'driver.longhorn.io',
    parameters: { encrypted: 'true', ...encryptionSecret(key) },
  } as never);
  await writeSecret(stage, key, { ...texts, note: 'x' });
  for (const [what, change] of [
    ['changed', () => writeSecret(stage, key, { CRYPTO_KEY_VALUE: plant('another key of encrypted volumes') })],
    ['deleted', () => cluster.kube.delete(secrets, key)],
  ] as const) {
    const answer = await change().then(
      () => 'taken',
      (error: unknown) => messageOf(error),
    );
    note(`answer to a key that is ${what}`, answer);
    if (!answer.includes('encrypts the volumes of storage class')) throw new Error(`a key is ${what}: ${answer}`);
  }
};

const encryptionSecret = (key: { readonly namespace: string; readonly name: string }) =>
  Object.fromEntries(
    ['provisioner', 'node-stage', 'node-publish'].flatMap((stage) => [
      [`csi.storage.k8s.io/${stage}-secret-name`, key.name],
      [`csi.storage.k8s.io/${stage}-secret-namespace`, key.namespace],
    ]),
  );

export const scenes: readonly ((stage: Stage) => Promise<void>)[] = [backUp, importObjects, keepKeys];
