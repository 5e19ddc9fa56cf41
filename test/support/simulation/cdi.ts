// An installed CDI: creates the claim of each DataVolume, and reports its progress in CDI's fields.
import { type DataVolume, type DataVolumeStatus, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';

type Later = (afterMs: number, what: () => void) => void;

/** Like its importer: scheduled, in progress, half done, done. */
export const installCdi = (kube: MemoryKube, later: Later): void =>
  kube.onChange(({ type, object }) => {
    if (type !== 'ADDED' || object.kind !== dataVolumeKind.type.kind) return;
    const dataVolume = object as DataVolume;
    const say = (status: DataVolumeStatus) =>
      kube.edit(dataVolumeKind.type, dataVolume.metadata, (edited) => {
        edited.status = { ...edited.status, ...status };
      });
    later(500, () => {
      makeClaim(kube, dataVolume);
      say({ phase: 'ImportScheduled', progress: 'N/A', claimName: dataVolume.metadata.name });
    });
    later(2_000, () => say({ phase: 'ImportInProgress', progress: '50.00%' }));
    later(4_000, () => say({ phase: 'Succeeded', progress: '100.0%' }));
  });

const makeClaim = (kube: MemoryKube, { apiVersion, kind, metadata, spec }: DataVolume): void => {
  const { namespace = 'default', name, uid = '' } = metadata;
  const { storageClassName = '', resources } = spec.storage ?? {};
  const storage = String(resources?.requests?.['storage'] ?? '1Gi');
  kube.seed(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace, name, ownerReferences: [{ apiVersion, kind, name, uid, controller: true }] },
    spec: {
      accessModes: ['ReadWriteMany'],
      volumeMode: 'Block',
      storageClassName,
      resources: { requests: { storage } },
    },
  });
};
