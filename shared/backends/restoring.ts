// A snapshot that nothing else is left of, and that its storage cannot restore as it is wanted: in another mode, class or size. It is restored as it was, into a
// claim that a Job copies from and that goes with that Job. Called by what reads origins and by what plans clones.
import { createHash } from 'node:crypto';
import {
  type PersistentVolumeClaim,
  type StorageClass,
  persistentVolumeClaims,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { ReadyOrigin } from '#shared/backends/origin.ts';
import { readOwn } from '#shared/backends/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { recordOf } from '#shared/populate/clone-record.ts';
import { defaultClassOf } from '#shared/populate/profile.ts';
import { buildVolume } from '#shared/populate/volume.ts';

/** Of the snapshot as it is now: a successor of its name holds other bytes. */
export const restoredName = ({ uid }: Pick<ObjectRef, 'uid'>, { restored }: Pick<ReadyOrigin, 'restored'>): string => {
  const digest = createHash('sha256').update(restored?.metadata.uid ?? '');
  return `restored-${uid}-${digest.digest('hex').slice(0, 8)}`;
};

/** With the class to restore it in: that of the volume where the driver is the same, else the usual one of its driver. */
export const withRestoreClass = async (
  kube: KubeClient,
  origin: ReadyOrigin,
  storageClass: StorageClass | undefined,
): Promise<ReadyOrigin> => {
  const { driver, hasClaim } = origin.clone;
  if (hasClaim || storageClass === undefined) return origin;
  const restoreClass = storageClass.provisioner === driver ? storageClass : await findClass(kube, driver);
  return { ...origin, clone: { ...origin.clone, restoreClass: restoreClass?.metadata.name } };
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

export const buildRestored = (owner: ObjectRef, origin: ReadyOrigin): PersistentVolumeClaim => {
  const { restoreClass, volumeMode, bytes } = origin.clone;
  const built = buildVolume({
    owner,
    role: 'restored',
    name: restoredName(owner, origin),
    storageClassName: restoreClass,
    volumeMode,
    accessModes: ['ReadWriteOnce'],
    bytes,
    annotations: {},
  });
  const dataSource = {
    apiGroup: 'snapshot.storage.k8s.io',
    kind: 'VolumeSnapshot',
    name: origin.snapshot ?? '',
  } as const;
  return { ...built, spec: { ...built.spec, dataSource } };
};
