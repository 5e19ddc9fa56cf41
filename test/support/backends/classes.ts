// The storage classes of the local cluster, by their behaviour, for tests of backends. Used by life.ts and copies.ts.
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import { aStorageClass } from '#test/support/builders.ts';

export interface Storage {
  readonly storageClass: StorageClass;
  readonly snapshots: boolean;
  /** The profile of the class, if it has existed for a while. */
  readonly described?: StorageProfile;
}

export const usual: Storage = { storageClass: aStorageClass(), snapshots: true };

export const localClasses: Readonly<Record<string, Storage>> = {
  'binds at once and takes snapshots': usual,
  'waits for a consumer': {
    storageClass: aStorageClass('local', { volumeBindingMode: 'WaitForFirstConsumer' }),
    snapshots: true,
  },
  'takes no snapshots': { storageClass: aStorageClass(), snapshots: false },
};
