// A snapshot that its storage cannot restore as it is wanted, in another mode, class or size: of a source that is gone, or in use. It is restored as it was,
// into a claim that a Job copies from and that goes once it has. Called by what reads origins and by what plans clones.
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

/** Of the snapshot as it is now: a successor of its name holds other bytes. */
export const restoredName = ({ uid }: Pick<ObjectRef, 'uid'>, snapshot: VolumeSnapshot): string => {
  const digest = createHash('sha256').update(snapshot.metadata.uid ?? '');
  return `restored-${uid}-${digest.digest('hex').slice(0, 8)}`;
};

/** With the class to restore it in: its own, as far as that is known; that of the volume where the driver is the same; else the usual one of its driver. */
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

/** What a claim is copied from, where that was made for it alone. */
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
