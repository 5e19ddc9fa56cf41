import { describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { diskBytesOf } from '#shared/backends/origin.ts';

const mib = 2 ** 20;
const filled = { inspection: { format: 'qcow2', compression: 'none', virtualSize: 64 * mib }, digests: {} } as const;

const aClaim = (role: 'disk' | 'volume', volumeMode: 'Block' | 'Filesystem'): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'root', namespace: 'default', labels: { 'bullion.dev/role': role } },
  spec: { accessModes: ['ReadWriteOnce'], volumeMode, resources: { requests: { storage: '256Mi' } } },
});

describe('the disk on a claim of 256 MiB that was filled with one of 64 MiB', () => {
  it.each([
    ['disk', 'Block', 256],
    ['disk', 'Filesystem', 64],
    ['volume', 'Block', 64],
  ] as const)('as a %s in mode %s has %i MiB', (role, mode, size) => {
    expect(diskBytesOf(aClaim(role, mode), filled, 256 * mib)).toBe(size * mib);
  });

  it('has what the claim has where nothing tells what it was filled with', () => {
    expect(diskBytesOf(aClaim('volume', 'Block'), undefined, 256 * mib)).toBe(256 * mib);
  });
});
