// The chosen clone strategy, and why: one row for each reason.
import { describe, expect, it } from 'vitest';
import { type CloneSource, type CloneTarget, chooseClone } from '#shared/populate/clone/strategy.ts';
import { cloneStrategyOf } from '#shared/populate/storage/profile.ts';
import { aStorageClass } from '#test/support/builders.ts';

const gib = 2 ** 30;
const driver = 'local.bullion.dev';

const aSource = (over: Partial<CloneSource> = {}): CloneSource => ({
  what: 'image ubuntu',
  driver,
  volumeMode: 'Block',
  bytes: 2 * gib,
  diskBytes: 2 * gib,
  hasSnapshot: true,
  hasClaim: true,
  ...over,
});

const aTarget = (over: Partial<CloneTarget> = {}): CloneTarget => {
  const { storageClass = aStorageClass('local', { allowVolumeExpansion: true }) } = over;
  const strategy = cloneStrategyOf(storageClass);
  return { storageClass, volumeMode: 'Block', bytes: 2 * gib, overhead: 0.06, strategy, ...over };
};

const annotated = (strategy: string) =>
  aStorageClass('local', {
    allowVolumeExpansion: true,
    metadata: { name: 'local', annotations: { 'cdi.kubevirt.io/clone-strategy': strategy } },
  });
const ceph = 'rook-ceph.rbd.csi.ceph.com';
const cephClass = aStorageClass('ceph', { provisioner: ceph, allowVolumeExpansion: true });
const bare = { hasSnapshot: false } as const;

describe('chooseClone', () => {
  it.each<[what: string, CloneSource, CloneTarget, strategy: string, because: RegExp]>([
    ['a snapshot that is there', aSource(), aTarget(), 'snapshot', /restores a snapshot/],
    ['a snapshot, although a pod uses the volume', aSource({ inUseBy: 'guest' }), aTarget(), 'snapshot', /restores/],
    ['a snapshot that outlived its volume', aSource({ hasClaim: false }), aTarget(), 'snapshot', /restores/],
    ['a snapshot that can be taken', aSource({ ...bare, snapshotClass: 'fast' }), aTarget(), 'snapshot', /restores/],
    ['a larger block volume', aSource(), aTarget({ bytes: 3 * gib }), 'snapshot', /restores/],
    [
      'a driver that clones well',
      aSource({ ...bare, driver: ceph }),
      aTarget({ storageClass: cephClass }),
      'csi-clone',
      /clones/,
    ],
    [
      'a class that asks for clones',
      aSource(bare),
      aTarget({ storageClass: annotated('csi-clone') }),
      'csi-clone',
      /clones/,
    ],
    [
      'a class with the clone strategy csi-clone, of a volume in use: a snapshot can be taken',
      aSource({ ...bare, inUseBy: 'guest', snapshotClass: 'fast' }),
      aTarget({ storageClass: annotated('csi-clone') }),
      'snapshot',
      /restores a snapshot/,
    ],
    [
      'a class that asks for copies',
      aSource(),
      aTarget({ storageClass: annotated('copy') }),
      'copy',
      /class local asks/,
    ],
    ['a driver that can do neither', aSource(bare), aTarget(), 'copy', /makes no snapshots/],
    ['another driver', aSource({ driver: 'other' }), aTarget(), 'copy', /is on other/],
    ['an unknown driver', aSource({ driver: undefined }), aTarget(), 'copy', /no known driver/],
    [
      'another volume mode',
      aSource(),
      aTarget({ volumeMode: 'Filesystem', bytes: 4 * gib }),
      'copy',
      /Block volume becomes a Filesystem/,
    ],
    [
      'a larger file system, whose disk grows',
      aSource({ volumeMode: 'Filesystem', diskBytes: gib }),
      aTarget({ volumeMode: 'Filesystem', bytes: 4 * gib }),
      'copy',
      /grows/,
    ],
    [
      'a larger file system, in which no disk has to grow',
      aSource({ volumeMode: 'Filesystem', holdsFiles: true }),
      aTarget({ volumeMode: 'Filesystem', bytes: 4 * gib }),
      'snapshot',
      /restores/,
    ],
    [
      'a larger volume of a class that cannot expand',
      aSource(),
      aTarget({ bytes: 3 * gib, storageClass: aStorageClass() }),
      'copy',
      /cannot expand/,
    ],
    [
      'a smaller file system that the disk fits into',
      aSource({ volumeMode: 'Filesystem', diskBytes: gib / 2 }),
      aTarget({ volumeMode: 'Filesystem', bytes: gib }),
      'copy',
      /smaller than the old one/,
    ],
  ])('%s', (_what, source, ...[target, strategy, because]) => {
    expect(chooseClone(source, target)).toEqual({ is: 'chosen', strategy, because: expect.stringMatching(because) });
  });

  const left = { hasClaim: false, restoreClass: 'local' } as const;
  it.each<[what: string, source: CloneSource, target: Partial<CloneTarget>, because: RegExp]>([
    ['another mode', aSource(left), { volumeMode: 'Filesystem', bytes: 4 * gib }, /^a Block volume becomes/],
    [
      'a larger file system',
      aSource({ ...left, volumeMode: 'Filesystem' }),
      { volumeMode: 'Filesystem', bytes: 4 * gib },
      /^the disk in the file system grows/,
    ],
    ['another driver', aSource({ ...left, driver: 'other' }), {}, /^it is on other/],
    ['a class that waits for a pod', aSource(left), { obstacle: 'class local waits' }, /^class local waits/],
  ])('reads a snapshot whose source is gone, for %s', (_what, source, ...[target, because]) => {
    const choice = chooseClone(source, aTarget(target));
    expect(choice).toMatchObject({ strategy: 'copy', because: expect.stringMatching(because) as string });
    expect(choice).toMatchObject({ because: expect.stringContaining('the snapshot is restored first') as string });
  });

  it('takes and reads a snapshot of a volume that is in use, when it cannot be restored as requested', () => {
    const used = aSource({ ...bare, inUseBy: 'guest', snapshotClass: 'fast', restoreClass: 'local' });
    expect(chooseClone(used, aTarget({ volumeMode: 'Filesystem', bytes: 4 * gib }))).toEqual({
      is: 'chosen',
      strategy: 'copy',
      because: expect.stringMatching(/becomes a Filesystem one; a snapshot of it is read, because pod guest/) as string,
      viaSnapshot: true,
    });
  });

  it('accepts a file system as large as that of a disk of unknown size', () => {
    const modes = { volumeMode: 'Filesystem' } as const;
    const source = aSource({ ...modes, bytes: gib, diskBytes: gib });
    expect(chooseClone(source, aTarget({ ...modes, bytes: gib }))).toMatchObject({ is: 'chosen' });
    expect(chooseClone(source, aTarget({ ...modes, bytes: gib - 2 ** 20 }))).toMatchObject({ is: 'refused' });
  });

  it.each<[what: string, CloneSource, CloneTarget, expected: object]>([
    [
      'a smaller volume, with both numbers',
      aSource(),
      aTarget({ bytes: gib }),
      { is: 'refused', reason: 'TargetTooSmall', message: expect.stringMatching(/2147483648 bytes.*1073741824/) },
    ],
    [
      'a file system with too little room beside its own',
      aSource({ diskBytes: gib, volumeMode: 'Filesystem' }),
      aTarget({ volumeMode: 'Filesystem', bytes: gib }),
      { is: 'refused', reason: 'TargetTooSmall' },
    ],
    [
      'a snapshot that cannot be restored as requested, nor in any class',
      aSource({ hasClaim: false }),
      aTarget({ volumeMode: 'Filesystem', bytes: 4 * gib }),
      {
        is: 'refused',
        reason: 'SnapshotNotRestorable',
        message: expect.stringContaining(`uses its driver ${driver}`),
      },
    ],
    [
      'a device of the files of an archive',
      aSource({ volumeMode: 'Filesystem', holdsFiles: true }),
      aTarget({ bytes: 4 * gib }),
      { is: 'refused', reason: 'TargetNotFileSystem', message: expect.stringContaining('volumeMode Filesystem') },
    ],
    [
      'a copy of a volume in use',
      aSource({ ...bare, inUseBy: 'guest' }),
      aTarget(),
      { is: 'waiting', reason: 'SourceInUse', message: expect.stringContaining('pod guest') },
    ],
    [
      'a clone of a volume in use',
      aSource({ ...bare, inUseBy: 'guest' }),
      aTarget({ storageClass: annotated('csi-clone') }),
      { is: 'waiting', reason: 'SourceInUse' },
    ],
  ])('does not choose %s', (_what, source, target, expected) => {
    expect(chooseClone(source, target)).toMatchObject(expected);
  });

  it.each([
    { has: 'files', wants: 'files', refused: false },
    { has: 'files', wants: 'a disk', refused: true },
    { has: 'a disk', wants: 'files', refused: true },
    { has: 'a disk', wants: 'a disk', refused: false },
    { has: 'files', wants: 'either', refused: false },
    { has: 'who knows, in a snapshot,', wants: 'files', refused: false },
  ])('of a volume with $has for a target with $wants is rejected: $refused', ({ has, wants, refused }) => {
    const volumeMode = 'Filesystem';
    const source = aSource({ volumeMode, holdsFiles: has === 'files', hasClaim: !has.includes('snapshot') });
    const holdsFiles = wants === 'either' ? undefined : wants === 'files';
    const choice = chooseClone(source, aTarget({ volumeMode, holdsFiles }));
    expect(choice.is === 'refused' ? choice.reason : choice.is).toBe(refused ? 'ContentTypeDiffers' : 'chosen');
  });
});
