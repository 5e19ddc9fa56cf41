// The classes of the local cluster, by what they do: what backends are held against. Called by life.ts and copies.ts.
import type { StorageClass } from '#shared/api/foreign/core.ts';
import { aStorageClass } from '#test/support/builders.ts';

interface Storage {
  readonly storageClass: StorageClass;
  readonly snapshots: boolean;
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
