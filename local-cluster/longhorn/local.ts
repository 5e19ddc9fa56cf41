// Simulated Longhorn as part of the local cluster: its kinds, classes, controller, webhook and HTTP API. Called by cluster.ts.
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { type StorageClass, namespaces, storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages, longhornDriver, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { type VolumeSnapshotClass, volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';
import type { ControllerContext } from '#local-cluster/controllers/controller.ts';
import type { VolumeDirectory } from '#local-cluster/controllers/volumes/directory.ts';
import { createLonghornApi } from '#local-cluster/longhorn/api.ts';
import { startBackingImageController } from '#local-cluster/longhorn/controller.ts';
import { type BackingFiles, openBackingFiles } from '#local-cluster/longhorn/files.ts';
import { readKey } from '#local-cluster/longhorn/prepare.ts';

const longhornClass: StorageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'longhorn' },
  provisioner: longhornDriver,
  reclaimPolicy: 'Delete',
  allowVolumeExpansion: true,
  volumeBindingMode: 'Immediate',
  parameters: { numberOfReplicas: '3', staleReplicaTimeout: '30' },
};

const snapshotClass: VolumeSnapshotClass = {
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshotClass',
  metadata: { name: 'longhorn-snapshot' },
  driver: longhornDriver,
  deletionPolicy: 'Delete',
};

/** Its namespace and classes; changes of users are kept. The CRDs must exist. */
export const ensureLonghornObjects = async (kube: KubeClient): Promise<void> => {
  const existsAlready = (error: unknown): void => {
    if (!isConflict(error)) throw error;
  };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: longhornNamespace } };
  await kube.create(namespaces, namespace).catch(existsAlready);
  await kube.create(storageClasses, longhornClass).catch(existsAlready);
  await kube.create(volumeSnapshotClasses, snapshotClass).catch(existsAlready);
};

export interface LocalLonghorn {
  /** Of its HTTP API, which is at `longhorn-backend.longhorn-system:9500` in a cluster. */
  readonly url: string;
  readonly stop: () => Promise<void>;
}

interface Options extends ControllerContext {
  readonly directory: VolumeDirectory;
  readonly files: BackingFiles;
  readonly dataDir: string;
  readonly port: number;
  readonly log: Logger;
}

const folderOf = (dataDir: string): string => join(dataDir, 'longhorn');

export const openLonghornFiles = (dataDir: string): Promise<BackingFiles> => openBackingFiles(folderOf(dataDir));

export const startLonghorn = async (options: Options): Promise<LocalLonghorn> => {
  const { kube, files, dataDir, port, log } = options;
  const backupOf = (name: string): string => join(folderOf(dataDir), 'backups', name);
  const controller = startBackingImageController({ ...options, backupOf });
  await controller.ready;
  const app = createLonghornApi({ kube, files, controller });
  const server = await startServer({ app, port, log, drainMs: 1_000 });
  return {
    url: server.url,
    stop: async () => {
      await server.close();
      await controller.stop();
    },
  };
};

/** Creates the raw disk of a backing image beside the volumes; those of its class are copied from it. Created once; throws on failure. */
export const unpackImage = async (
  { kube, files, directory }: Pick<Options, 'kube' | 'files' | 'directory'>,
  { parameters = {} }: StorageClass,
): Promise<void> => {
  const name = parameters['backingImage'] ?? '';
  const image = await kube.get(backingImages, { namespace: longhornNamespace, name });
  const uuid = image?.status?.uuid;
  if (uuid === undefined) throw new Error(`backing image ${name} does not exist`);
  const secret = parameters['csi.storage.k8s.io/node-publish-secret-name'];
  const namespace = parameters['csi.storage.k8s.io/node-publish-secret-namespace'] ?? '';
  const key = secret === undefined ? undefined : await readKey(kube, namespace, secret);
  await access(files.pathOf(uuid));
  await directory.putImage(uuid, (draft) => files.unpack(uuid, draft, key));
};
