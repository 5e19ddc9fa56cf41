import { describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import { diskBytesOf, readSnapshotOrigin } from '#shared/populate/clone/origin.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const mib = 2 ** 20;
const filled = { inspection: { format: 'qcow2', compression: 'none', virtualSize: 64 * mib }, digests: {} } as const;

const aClaim = (role: 'disk' | 'volume', volumeMode: 'Block' | 'Filesystem'): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'root', namespace: 'default', labels: { 'bullion.dev/role': role } },
  spec: { accessModes: ['ReadWriteOnce'], volumeMode, resources: { requests: { storage: '256Mi' } } },
});

interface Snapped {
  readonly restoreSize?: string;
  readonly sourceVolumeMode?: 'Block' | undefined;
  readonly marks: Record<string, string>;
}

const originOf = ({ restoreSize = '1Gi', sourceVolumeMode, marks }: Snapped) => {
  const kube = createMemoryKube();
  kube.seed(volumeSnapshots, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { namespace: 'default', name: 'kept', annotations: marks },
    spec: { source: {} },
    status: { readyToUse: true, restoreSize, boundVolumeSnapshotContentName: 'content' },
  } as VolumeSnapshot);
  kube.seed(volumeSnapshotContents, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: { name: 'content' },
    spec: { driver: 'local.bullion.dev', deletionPolicy: 'Delete', ...(sourceVolumeMode && { sourceVolumeMode }) },
  } as never);
  return readSnapshotOrigin(kube, { namespace: 'default', name: 'kept' }, { what: 'it', mayUse: () => true });
};

describe('the size of the disk on a claim of 256 MiB that was filled with a disk of 64 MiB', () => {
  it.each([
    ['disk', 'Block', 256],
    ['disk', 'Filesystem', 256],
    ['volume', 'Filesystem', 64],
    ['volume', 'Block', 64],
  ] as const)('as a %s in mode %s has at most %i MiB', (role, mode, size) => {
    expect(diskBytesOf(aClaim(role, mode), filled, 256 * mib)).toBe(size * mib);
  });

  it('is that of the claim when there is no record of the population', () => {
    expect(diskBytesOf(aClaim('volume', 'Block'), undefined, 256 * mib)).toBe(256 * mib);
  });
});

describe('a snapshot as the source of a clone', () => {
  const advised = 'cdi.kubevirt.io/storage.import.advisedRestoreSize';
  const mode = 'cdi.kubevirt.io/storage.import.sourceVolumeMode';
  const known = { [annotations.populated]: JSON.stringify(filled) };
  it.each<[what: string, restoreSize: string, marks: Record<string, string>, mib: number, disk: number]>([
    ['the size that its driver reports', '256Mi', { [advised]: '512Mi' }, 256, 256],
    ['the advised size, when its driver reports none', '0', { [advised]: '512Mi', ...known }, 512, 64],
    ['the disk that it is known to hold', '0', known, 64, 64],
    ['a disk that is smaller than it', '256Mi', known, 256, 64],
  ])('is as large as %s', async (_what, restoreSize, marks, ...[size, disk]) => {
    const origin = await originOf({ restoreSize, marks });
    expect(origin).toMatchObject({ clone: { bytes: size * mib, diskBytes: disk * mib } });
  });

  it.each<[what: string, told: 'Block' | undefined, marks: Record<string, string>, found: string]>([
    ['its content has', 'Block', {}, 'Block'],
    ['its annotation has, when its snapshotter is older', undefined, { [mode]: 'Block' }, 'Block'],
    ['is the default of Kubernetes', undefined, {}, 'Filesystem'],
  ])('has the mode that %s', async (_what, sourceVolumeMode, ...[marks, found]) => {
    expect(await originOf({ sourceVolumeMode, marks })).toMatchObject({ clone: { volumeMode: found } });
  });
});
