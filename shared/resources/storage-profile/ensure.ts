// One StorageProfile for each storage class, and true to it: looked at each minute, with three listings and nothing else where nothing changed.
import { isDeepStrictEqual } from 'node:util';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { type StorageProfile, storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { type StorageClass, storageClasses } from '#shared/api/foreign/core.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { formatQuantity } from '#shared/api/quantity.ts';
import type { VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import { readSnapshotClasses } from '#shared/backends/reading.ts';
import { leastBytesOf } from '#shared/populate/profile.ts';
import { describeClass } from '#shared/populate/storage-profile.ts';
import { type DriverDeps, drive } from '#shared/resources/driver.ts';
import { isConflict } from '#shared/runtime/errors.ts';

/** Known of the driver, and an administrator's to change. */
const leastMark = (storageClass: StorageClass): Readonly<Record<string, string>> => {
  const bytes = leastBytesOf(storageClass);
  return bytes === 0 ? {} : { [cdiAnnotations.leastSize]: formatQuantity(bytes) };
};

const ownedBy = ({ apiVersion, kind, metadata: { name, uid = '' } }: StorageClass) => ({ apiVersion, kind, name, uid });

const profileFor = (storageClass: StorageClass): StorageProfile => ({
  apiVersion: apiVersionOf(storageProfiles),
  kind: storageProfiles.kind,
  metadata: {
    name: storageClass.metadata.name,
    labels: { 'app.kubernetes.io/managed-by': 'bullion' },
    annotations: leastMark(storageClass),
    ownerReferences: [ownedBy(storageClass)],
  },
  spec: {},
});

const isTrue = ({ status = {} }: StorageProfile, described: ReturnType<typeof describeClass>): boolean => {
  const { conditions: _, observedGeneration: __, ...told } = status;
  return isDeepStrictEqual(JSON.parse(JSON.stringify(described.status)), told);
};

/** What there is to store volumes in, and what is said of it. */
export interface StorageFacts {
  readonly classes: readonly StorageClass[];
  readonly snapshotClasses: readonly VolumeSnapshotClass[];
  readonly profiles: readonly StorageProfile[];
}

/** What is missing is made; what is no longer true is looked at again. A CDI that is installed does this itself: `undefined`. */
export const ensureProfiles = async (deps: DriverDeps): Promise<StorageFacts | undefined> => {
  const { kube, cdi } = deps;
  if ((await cdi?.()) === 'use') return undefined;
  const [classes, snapshotClasses, profiles] = await Promise.all([
    kube.list(storageClasses),
    readSnapshotClasses(kube),
    kube.list(storageProfiles),
  ]);
  for (const storageClass of classes.items) {
    const profile = profiles.items.find(({ metadata }) => metadata.name === storageClass.metadata.name);
    if (profile === undefined) {
      // Its own event has it described.
      // oxlint-disable-next-line no-await-in-loop
      await kube.create(storageProfiles, profileFor(storageClass)).catch((error: unknown) => {
        if (!isConflict(error)) throw error;
      });
    } else if (!isTrue(profile, describeClass(storageClass, snapshotClasses, profile.spec ?? {}))) {
      const { apiVersion, kind, metadata } = profile;
      // oxlint-disable-next-line no-await-in-loop
      await drive(deps, { apiVersion, kind, name: metadata.name }, { which: 'all' });
    }
  }
  return { classes: classes.items, snapshotClasses, profiles: profiles.items };
};
