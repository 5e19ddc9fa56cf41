// What is so in a simulated cluster, whatever anybody says about it: the one record that its parts write, and what they look up in it.
import {
  type PersistentVolumeClaim,
  type StorageClass,
  persistentVolumeClaims,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';

/** What really lies on a volume. */
export interface VolumeContent {
  isFilled: boolean;
  /** Transfers that began to write to it. */
  writers: number;
}

export interface ClusterRecord {
  readonly kube: MemoryKube;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Asks to be stepped again at that time; what is past is no news. */
  readonly later: (at: number) => void;
  /** Of volumes, by claim UID. */
  readonly contents: Map<string, VolumeContent>;
  /** Of snapshots, by name. */
  readonly snapshotContents: Map<string, { readonly isFilled: boolean }>;
  /** Transfers that began on a volume that was filled already. */
  readonly overwrites: string[];
  /** What lies in the object store, by UID of the export. */
  readonly store: { readonly parts: Set<string>; readonly objects: Map<string, VolumeContent> };
}

/** RFC 3339, in whole seconds as Kubernetes has it. */
export const iso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');

/** Milliseconds since the epoch. */
export const creationOf = ({ metadata }: KubeObject): number => Date.parse(metadata.creationTimestamp ?? '');

export const claimNamed = ({ kube }: ClusterRecord, name: string | undefined): PersistentVolumeClaim | undefined =>
  kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === name);

export const classOf = ({ kube }: ClusterRecord, claim: PersistentVolumeClaim | undefined): StorageClass | undefined =>
  kube.all(storageClasses).find(({ metadata }) => metadata.name === claim?.spec.storageClassName);

/** What lies on the volume of the claim of that name. */
export const contentOf = (record: ClusterRecord, claimName: string | undefined): VolumeContent | undefined => {
  const claim = claimNamed(record, claimName);
  return claim === undefined ? undefined : record.contents.get(claim.metadata.uid!);
};
