// Clusters in memory that share a backup target in memory, for unit tests of backups. Data is not transferred: a test ends Jobs explicitly.
import { randomBytes } from 'node:crypto';
import { findCondition } from '#shared/api/conditions.ts';
import {
  type Job,
  configMaps,
  jobs,
  namespaces,
  persistentVolumeClaims,
  pods,
  secrets,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import type { BackupDeps } from '#shared/backup/settings.ts';
import { type BackupImageObject, imageTypeOf } from '#shared/backup/image.ts';
import { dataPrefix } from '#shared/backup/place.ts';
import { tickBackups } from '#shared/backup/tick.ts';
import { backends } from '#shared/backends/registry.ts';
import type { Store } from '#shared/clients/store/store.ts';
import type { CloudEvent } from '#events/event.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { indexKey } from '#shared/transfer/chunks/chunk-index.ts';
import type { TransferReport } from '#shared/transfer/report.ts';
import { aFault, aPod, aStorageClass, aVolume, testSettings, testTime } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import type { MemoryStore } from '#test/support/memory-store.ts';

export const secretKey = 's3cret-of-the-target';
const endpoint = 'https://store.example';

export interface MemoryCluster {
  readonly kube: MemoryKube;
  readonly deps: BackupDeps;
  readonly sent: CloudEvent[];
  /** Milliseconds since the epoch. */
  readonly time: { clock: number };
  /** Runs ticks. */
  readonly tick: (times?: number) => Promise<void>;
  readonly setTarget: (fields?: Readonly<Record<string, string>>) => void;
  readonly image: (object: BackupImageObject) => Promise<BackupImageObject | undefined>;
  /** An image that is ready to use, with its golden volume. */
  readonly ready: (object: unknown, digest?: string) => BackupImageObject;
  /** Completes its backup Job, with this disk as result. */
  readonly finishJob: (object: BackupImageObject, disk: string) => void;
  readonly failJob: (object: BackupImageObject, message: string) => void;
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** `stores` by bucket: other buckets are unreachable. */
export const createMemoryCluster = (
  stores: ReadonlyMap<string, Store>,
  over: Partial<BackupDeps> = {},
  uidPrefix = randomBytes(4).toString('hex'),
): MemoryCluster => {
  const sent: CloudEvent[] = [];
  const time = { clock: testTime };
  const kube = createMemoryKube({ now: () => time.clock, uidPrefix });
  for (const name of ['kube-system', 'default', 'bullion-system'])
    kube.seed(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  kube.seed(storageClasses, aStorageClass());
  for (const namespace of ['default', 'bullion-system'])
    kube.seed(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'backup-target', namespace },
      data: { accessKeyId: base64('reader'), secretKey: base64(`${secretKey}\n`) },
    });
  const open: BackupDeps['open'] = (target) => {
    const store = target.type === 's3' ? stores.get(target.bucket) : undefined;
    if (store === undefined) throw new InvalidInput(`${target.name} is not there`);
    return { store, close: () => Promise.resolve() };
  };
  const deps: BackupDeps = {
    kube,
    backends,
    settings: testSettings,
    open,
    secretName: 'backup-target',
    retrySeconds: 600,
    lostSeconds: 7 * 24 * 3600,
    now: () => time.clock,
    log: silentLogger,
    send: async (event) => {
      sent.push(event);
      return { isDelivered: true, attempts: 1 } as never;
    },
    ...over,
  };
  const typeOf = (object: BackupImageObject) => imageTypeOf(object)!;
  const keyOf = ({ metadata }: BackupImageObject) => ({ namespace: metadata.namespace, name: metadata.name });
  const jobOf = (object: BackupImageObject): Job =>
    kube.all<Job>(jobs).find(({ metadata }) => metadata.name === `backup-${object.metadata.uid}`)!;
  const endJob = (object: BackupImageObject, phase: 'Succeeded' | 'Failed', report: TransferReport): void => {
    const job = jobOf(object);
    kube.seed(pods, aPod(job, job.metadata.uid!, phase, { exitCode: phase === 'Succeeded' ? 0 : 1, report }));
    kube.edit(jobs, { namespace: job.metadata.namespace, name: job.metadata.name }, (edited) => {
      const type = phase === 'Succeeded' ? 'Complete' : 'Failed';
      const lastTransitionTime = new Date(time.clock).toISOString();
      edited.status = { conditions: [{ type, status: 'True', lastTransitionTime }] } as never;
    });
  };
  return {
    kube,
    deps,
    sent,
    time,
    tick: async (times = 1) => {
      for (let count = 0; count < times; count += 1) {
        time.clock += 60_000;
        await tickBackups(deps, new AbortController().signal);
      }
    },
    setTarget: (fields = { type: 's3', endpoint, bucketName: 'backups' }) => {
      const key = { namespace: 'bullion-system', name: 'backup-target' };
      const present = kube.all(configMaps).find(({ metadata }) => metadata.name === key.name);
      if (present === undefined)
        kube.seed(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: key, data: { ...fields } });
      else
        kube.edit(configMaps, key, (edited) => {
          edited.data = { ...fields };
        });
    },
    image: async (object) => kube.get(typeOf(object), keyOf(object)),
    ready: (given, digest = 'a'.repeat(64)) => {
      const object = given as BackupImageObject;
      const volume = `${object.metadata.name}-image-pvc`;
      const inPlace = { name: volume, namespace: object.metadata.namespace! };
      if (!kube.all(persistentVolumeClaims).some(({ metadata }) => metadata.name === volume))
        kube.seed(persistentVolumeClaims, aVolume({ metadata: inPlace }));
      const status = {
        phase: object.apiVersion.startsWith('harvester') ? 'Imported' : 'Available',
        state: 'Available',
        format: 'qcow2',
        compression: 'none',
        size: 1000,
        virtualSize: 2 ** 20,
        digests: { sha256: digest },
        storageClassName: 'local',
        children: { volume },
        conditions: [{ type: 'Ready', status: 'True', reason: 'Ready', message: 'the image is ready to use' }],
      };
      if (object.metadata.uid === undefined)
        return kube.seed(typeOf(object), { ...object, status } as BackupImageObject);
      kube.edit(typeOf(object), keyOf(object), (edited) => {
        edited.status = status as never;
      });
      return object;
    },
    finishJob: (object, disk) => {
      for (const store of stores.values())
        (store as MemoryStore).objects.set(indexKey(dataPrefix, disk), Buffer.from('table'));
      const backup = { disk, chunks: 3, newChunks: 3, sentBytes: 1234 };
      const inspection = { format: 'raw', compression: 'none', size: 2 ** 20, virtualSize: 2 ** 20 } as const;
      const counts = { receivedBytes: 0, writtenBytes: 1234, seconds: 1 };
      endJob(object, 'Succeeded', { outcome: 'succeeded', inspection, digests: {}, ...counts, backup });
    },
    failJob: (object, message) => endJob(object, 'Failed', aFault({ reason: 'TargetFailed', message })),
  };
};

/** A cluster with this store as target. */
export const clusterOn = (store: Store): MemoryCluster => {
  const made = createMemoryCluster(new Map([['backups', store]]));
  made.setTarget();
  return made;
};

/** The same image, with a backup requested. */
export const backedUp = (image: { readonly spec: object }, spec: object = {}): BackupImageObject =>
  ({ ...image, spec: { ...image.spec, backup: true, ...spec } }) as unknown as BackupImageObject;

/** An image that is backed up, with its metadata. */
export const kept = async (where: MemoryCluster, object: unknown, disk: string): Promise<BackupImageObject> => {
  const image = where.ready(object);
  await where.tick();
  where.finishJob(image, disk);
  await where.tick();
  return image;
};

export const conditionOf = (image: BackupImageObject | undefined, type: string) =>
  findCondition(image?.status?.conditions, type);
