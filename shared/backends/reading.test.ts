// Which class makes snapshots of a volume: one row for each word on it.
import { describe, expect, it } from 'vitest';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { readSnapshotClass } from '#shared/backends/reading.ts';
import { aSnapshotClass } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const driver = 'local.bullion.dev';

describe('snapshots of a volume are made by', () => {
  it.each<[what: string, names: readonly string[], words: readonly (string | undefined)[], found: string | undefined]>([
    ['none where its driver has none', [], [], undefined],
    ['the only class of its driver', ['b'], [], 'b'],
    ['the first of them where nobody says', ['b', 'a'], [], 'a'],
    ['the one that its StorageProfile names', ['b', 'a'], ['b'], 'b'],
    ['the one that is asked for there, before the one that was', ['c', 'b', 'a'], ['b', 'c'], 'c'],
    ['not by one of another driver', ['b', 'a'], ['other'], 'a'],
    ['not by one that is gone', ['b', 'a'], ['gone'], 'a'],
  ])('%s', async (_what, names, [told, asked], found) => {
    const kube = createMemoryKube();
    for (const name of names) kube.seed(volumeSnapshotClasses, aSnapshotClass(name, { driver }));
    kube.seed(volumeSnapshotClasses, aSnapshotClass('other', { driver: 'other.example' }));
    kube.seed(storageProfiles, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'StorageProfile',
      metadata: { name: 'fast' },
      status: told === undefined ? {} : { snapshotClass: told },
      ...(asked === undefined ? {} : { spec: { snapshotClass: asked } }),
    });
    expect(await readSnapshotClass(kube, driver, 'fast')).toBe(found);
  });
});
