// Which class makes the snapshot of a golden volume, from what the cluster says to what is made: one row for each word on it.
import { describe, expect, it } from 'vitest';
import { type StorageProfileSpec, storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import { csi } from '#shared/backends/csi/index.ts';
import {
  aPopulation,
  aSnapshotClass,
  aStorageClass,
  aStorageProfile,
  aVolume,
  anImage,
  testSettings,
  testTime,
} from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

interface Words {
  readonly classes?: readonly string[];
  readonly spec?: StorageProfileSpec;
  readonly status?: StorageProfileSpec;
  /** The user's. */
  readonly asked?: string;
  /** What was told when the volume was made. */
  readonly marked?: string;
  readonly isRetried?: boolean;
}

const take = async ({ classes = ['b', 'a'], spec, status, asked, marked, isRetried = false }: Words) => {
  const kube = createMemoryKube();
  kube.seed(storageClasses, aStorageClass());
  for (const name of classes) kube.seed(volumeSnapshotClasses, aSnapshotClass(name));
  kube.seed(volumeSnapshotClasses, aSnapshotClass('other', { driver: 'other.example' }));
  kube.seed(storageProfiles, aStorageProfile({ ...(spec && { spec }), ...(status && { status }) }));
  const image = anImage({
    storage: { ...anImage().storage, ...(asked && { snapshotClassName: asked }) },
    state: { phase: isRetried ? 'Failed' : 'Snapshotting' },
    retryToken: isRetried ? 'again' : undefined,
    trustsStatus: !isRetried,
  });
  const { metadata, ...volume } = aVolume();
  const marks = {
    [annotations.populated]: JSON.stringify(aPopulation),
    ...(marked && { [annotations.snapshotClass]: marked }),
  };
  kube.seed(persistentVolumeClaims, {
    ...volume,
    metadata: { ...metadata, annotations: { ...metadata.annotations, ...marks } },
  });
  const { actions, state } = csi.initialize(image, await csi.check(kube, image), {
    now: testTime,
    settings: testSettings,
  });
  const [snapshot] = actions.flatMap((one) => (one.do === 'create' ? [one.object as VolumeSnapshot] : []));
  const reads = kube.calls.map(({ resource }) => resource).filter((resource) => resource.startsWith('volumesnapshotc'));
  return { made: snapshot?.spec.volumeSnapshotClassName ?? state.reason, reads };
};

describe('the driver that takes the snapshot of a golden volume is', () => {
  it.each<[what: string, words: Words, made: string]>([
    ['the first class of its driver, where nobody says', {}, 'a'],
    ['the one that the profile of the class asks for', { spec: { snapshotClass: 'b' } }, 'b'],
    ['the one that the profile has found', { status: { snapshotClass: 'b' } }, 'b'],
    ['the one asked for before the one found', { spec: { snapshotClass: 'b' }, status: { snapshotClass: 'a' } }, 'b'],
    ['its driver’s, whatever the profile asks for', { spec: { snapshotClass: 'other' } }, 'a'],
    ['the only one there is', { classes: ['a'], status: { snapshotClass: 'gone' } }, 'a'],
    ['the one that the user names, before any profile', { asked: 'a', status: { snapshotClass: 'b' } }, 'a'],
    ['none, where the user names one of another driver', { asked: 'other' }, 'SnapshotClassInvalid'],
    ['the one that was told when the volume was made', { marked: 'b' }, 'b'],
    ['the user’s all the same', { marked: 'b', asked: 'a' }, 'a'],
    ['the one that there is now, where that came to nothing', { marked: 'gone', isRetried: true }, 'a'],
    ['none, where there is none: the image is usable without', { classes: [] }, 'Ready'],
  ])('%s', async (_what, words, made) => {
    expect((await take(words)).made).toBe(made);
  });

  it('remembered without another request', async () => {
    expect((await take({ marked: 'b' })).reads).toEqual([]);
    expect((await take({})).reads).toEqual(['volumesnapshotclasses']);
  });
});
