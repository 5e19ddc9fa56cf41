// A snapshot that the storage cannot restore directly because another volume mode, class or size is requested, and whose source is gone or in
// use. It is restored unchanged into a claim that a Job copies from; the claim is removed after the copy. Called by the readers of sources and
// the plans of clones.
import { createHash } from 'node:crypto';
import {
  type PersistentVolumeClaim,
  type StorageClass,
  persistentVolumeClaims,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { readOwn } from '#shared/populate/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import { defaultClassOf } from '#shared/populate/storage/profile.ts';
import { buildFromSnapshot } from '#shared/populate/storage/snapshot.ts';

/** Includes the UID of the snapshot: a successor with its name holds other bytes. */
export const restoredName = ({ uid }: Pick<ObjectRef, 'uid'>, snapshot: VolumeSnapshot): string => {
  const digest = createHash('sha256').update(snapshot.metadata.uid ?? '');
  return `restored-${uid}-${digest.digest('hex').slice(0, 8)}`;
};

/**
 * Adds the class for the restore: the class of the snapshot's volume, if known; else the class of the new volume, if the driver is the same;
 * else the usual class of the driver.
 */
export const withRestoreClass = async (
  kube: KubeClient,
  origin: ReadyOrigin | undefined,
  storageClass: StorageClass | undefined,
): Promise<ReadyOrigin | undefined> => {
  if (origin === undefined || storageClass === undefined) return origin;
  const { driver, hasClaim } = origin.clone;
  const withClass = (restoreClass: string | undefined) => ({ ...origin, clone: { ...origin.clone, restoreClass } });
  if (hasClaim) return withClass(origin.className);
  const found = storageClass.provisioner === driver ? storageClass : await findClass(kube, driver);
  return withClass(found?.metadata.name);
};

const findClass = async (kube: KubeClient, driver: string | undefined): Promise<StorageClass | undefined> => {
  const { items } = await kube.list(storageClasses);
  const fitting = items.filter(({ provisioner }) => provisioner === driver);
  return defaultClassOf(fitting) ?? fitting.toSorted((a, b) => a.metadata.name.localeCompare(b.metadata.name))[0];
};

/** The claim that was created only to be copied from. */
export const readRestored = async (
  kube: KubeClient,
  owner: ObjectRef,
  claim: PersistentVolumeClaim,
): Promise<PersistentVolumeClaim | undefined> => {
  const { from } = recordOf(claim) ?? {};
  return from?.restored === true ? (await readOwn(kube, persistentVolumeClaims, owner, from.name)).own : undefined;
};

export const buildRestored = (
  owner: ObjectRef,
  { clone }: Pick<ReadyOrigin, 'clone'>,
  snapshot: VolumeSnapshot,
): PersistentVolumeClaim => {
  const { restoreClass, volumeMode } = clone;
  return buildFromSnapshot(snapshot, {
    owner,
    role: 'restored',
    name: restoredName(owner, snapshot),
    storageClassName: restoreClass,
    volumeMode,
    accessModes: ['ReadWriteOnce'],
    bytes: clone.bytes,
  });
};
