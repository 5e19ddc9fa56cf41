// snapshot.storage.k8s.io: only the fields we read or write.
import type { VolumeMode } from '#shared/api/foreign/core.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export interface VolumeSnapshot extends KubeObject {
  readonly spec: {
    readonly volumeSnapshotClassName?: string;
    readonly source: { readonly persistentVolumeClaimName?: string; readonly volumeSnapshotContentName?: string };
  };
  readonly status?: {
    readonly readyToUse?: boolean;
    readonly boundVolumeSnapshotContentName?: string;
    readonly restoreSize?: string;
    readonly creationTime?: string;
    readonly error?: { readonly message?: string; readonly time?: string };
  };
}

export interface VolumeSnapshotClass extends KubeObject {
  readonly driver: string;
  readonly deletionPolicy: 'Delete' | 'Retain';
  readonly parameters?: Readonly<Record<string, string>>;
}

export interface VolumeSnapshotContent extends KubeObject {
  readonly spec: {
    readonly deletionPolicy: 'Delete' | 'Retain';
    readonly driver: string;
    readonly sourceVolumeMode?: VolumeMode;
    readonly source: { readonly volumeHandle?: string; readonly snapshotHandle?: string };
    readonly volumeSnapshotClassName?: string;
    readonly volumeSnapshotRef: { readonly namespace?: string; readonly name?: string; readonly uid?: string };
  };
  readonly status?: {
    readonly readyToUse?: boolean;
    readonly snapshotHandle?: string;
    readonly restoreSize?: number;
    readonly error?: { readonly message?: string };
  };
}

const group = { group: 'snapshot.storage.k8s.io', version: 'v1' } as const;

export const volumeSnapshots: ResourceType<VolumeSnapshot> = {
  ...group,
  kind: 'VolumeSnapshot',
  plural: 'volumesnapshots',
  namespaced: true,
};
export const volumeSnapshotClasses: ResourceType<VolumeSnapshotClass> = {
  ...group,
  kind: 'VolumeSnapshotClass',
  plural: 'volumesnapshotclasses',
  namespaced: false,
};
export const volumeSnapshotContents: ResourceType<VolumeSnapshotContent> = {
  ...group,
  kind: 'VolumeSnapshotContent',
  plural: 'volumesnapshotcontents',
  namespaced: false,
};
