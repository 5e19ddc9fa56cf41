// A claim that begins as a snapshot was. Called by who copies from one, and by exports.
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { type VolumeRequest, buildVolume } from '#shared/populate/volume.ts';

/** `bytes`: at least; no driver restores into less than it says. */
export const buildFromSnapshot = (
  snapshot: VolumeSnapshot,
  request: Omit<VolumeRequest, 'annotations'>,
): PersistentVolumeClaim => {
  const least = parseQuantity(snapshot.status?.restoreSize) ?? 0;
  const built = buildVolume({ ...request, bytes: Math.max(request.bytes, least), annotations: {} });
  const dataSource = {
    apiGroup: 'snapshot.storage.k8s.io',
    kind: 'VolumeSnapshot',
    name: snapshot.metadata.name,
  } as const;
  return { ...built, spec: { ...built.spec, dataSource } };
};
