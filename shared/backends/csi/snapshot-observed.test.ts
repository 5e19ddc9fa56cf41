// The class of the snapshot of a golden volume, by the state of the cluster: one row for each setting.
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
  /** What was recorded when the volume was created. */
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

describe('the snapshot class of a golden volume is', () => {
  it.each<[what: string, words: Words, made: string]>([
    ['the first class of its driver by default', {}, 'a'],
    ['the requested one in the profile of the class', { spec: { snapshotClass: 'b' } }, 'b'],
    ['the one in the status of the profile', { status: { snapshotClass: 'b' } }, 'b'],
    [
      'the requested one in the profile before the one in its status',
      { spec: { snapshotClass: 'b' }, status: { snapshotClass: 'a' } },
      'b',
    ],
    ['one of its driver, whatever the profile requests', { spec: { snapshotClass: 'other' } }, 'a'],
    ['the only existing one', { classes: ['a'], status: { snapshotClass: 'gone' } }, 'a'],
    ['the one that the user names, before any profile', { asked: 'a', status: { snapshotClass: 'b' } }, 'a'],
    ['none when the user names one of another driver', { asked: 'other' }, 'SnapshotClassInvalid'],
    ['the one that was recorded when the volume was created', { marked: 'b' }, 'b'],
    ['the one of the user in any case', { marked: 'b', asked: 'a' }, 'a'],
    ['an existing one, when the recorded one was deleted', { marked: 'gone', isRetried: true }, 'a'],
    ['none when there is none: the image is usable without a snapshot', { classes: [] }, 'Ready'],
  ])('%s', async (_what, words, made) => {
    expect((await take(words)).made).toBe(made);
  });

  it('the recorded one, without another request', async () => {
    expect((await take({ marked: 'b' })).reads).toEqual([]);
    expect((await take({})).reads).toEqual(['volumesnapshotclasses']);
  });
});
