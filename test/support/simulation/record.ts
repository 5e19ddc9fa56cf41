// The actual state of a simulated cluster, independent of reported states: the one record that its parts write and read.
import {
  type PersistentVolumeClaim,
  type StorageClass,
  persistentVolumeClaims,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';

/** The actual content of a volume. */
export interface VolumeContent {
  isFilled: boolean;
  /** Transfers that started to write to it. */
  writers: number;
}

export interface ClusterRecord {
  readonly kube: MemoryKube;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Requests another step at that time; a time in the past is ignored. */
  readonly later: (at: number) => void;
  /** Of volumes, by claim UID. */
  readonly contents: Map<string, VolumeContent>;
  /** By name of a persistent volume: UID of the claim whose content it has. Default: there are none. */
  readonly volumes?: Map<string, string> | undefined;
  /** Of snapshots, by name. */
  readonly snapshotContents: Map<string, { readonly isFilled: boolean }>;
  /** Transfers that started on a volume that was already filled. */
  readonly overwrites: string[];
  /** Content of the object store, by UID of the export. */
  readonly store: { readonly parts: Set<string>; readonly objects: Map<string, VolumeContent> };
}

/** RFC 3339, in whole seconds as in Kubernetes. */
export const iso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');

/** Milliseconds since the epoch. */
export const creationOf = ({ metadata }: KubeObject): number => Date.parse(metadata.creationTimestamp ?? '');

export const claimNamed = ({ kube }: ClusterRecord, name: string | undefined): PersistentVolumeClaim | undefined =>
  kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === name);

export const classOf = ({ kube }: ClusterRecord, claim: PersistentVolumeClaim | undefined): StorageClass | undefined =>
  kube.all(storageClasses).find(({ metadata }) => metadata.name === claim?.spec.storageClassName);

/** The content of the volume of the claim with that name. */
export const contentOf = (record: ClusterRecord, claimName: string | undefined): VolumeContent | undefined => {
  const claim = claimNamed(record, claimName);
  return claim === undefined ? undefined : record.contents.get(claim.metadata.uid!);
};
