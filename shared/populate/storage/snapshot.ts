// The snapshot of a filled volume: its class and its manifest. Called by backends.
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot, VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import { childMetadata, type ObjectRef } from '#shared/api/object.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { type Population, contentLabel, type VolumeRequest, buildVolume } from '#shared/populate/population.ts';
import { parseQuantity } from '#shared/api/quantity.ts';

const defaultMark = 'snapshot.storage.kubernetes.io/is-default-class';

export type SnapshotClassChoice =
  | { readonly is: 'found'; readonly name: string }
  /** The driver does not support snapshots, and none was requested. */
  | { readonly is: 'none' }
  | { readonly is: 'wrong'; readonly message: string };

/** The class for volumes of `driver`: the requested one if it fits, else the driver's default one, else its first by name. */
export const chooseSnapshotClass = (
  classes: readonly VolumeSnapshotClass[],
  driver: string | undefined,
  asked: string | undefined,
): SnapshotClassChoice => {
  if (asked !== undefined && asked !== '') return checkAsked(classes, driver, asked);
  const fitting = classes
    .filter((candidate) => candidate.driver === driver)
    .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  const chosen = fitting.find((candidate) => candidate.metadata.annotations?.[defaultMark] === 'true') ?? fitting[0];
  return chosen === undefined ? { is: 'none' } : { is: 'found', name: chosen.metadata.name };
};

const checkAsked = (
  classes: readonly VolumeSnapshotClass[],
  driver: string | undefined,
  asked: string,
): SnapshotClassChoice => {
  const found = classes.find((candidate) => candidate.metadata.name === asked);
  if (found === undefined) {
    return {
      is: 'wrong',
      message: `VolumeSnapshotClass "${asked}" does not exist: create it, or leave snapshotClassName out`,
    };
  }
  if (driver !== undefined && found.driver !== driver) {
    return {
      is: 'wrong',
      message: `VolumeSnapshotClass "${asked}" is of driver ${found.driver}, but the volume is of ${driver}: name one of that driver`,
    };
  }
  return { is: 'found', name: asked };
};

export const buildSnapshot = (owner: ObjectRef, name: string, claim: string, className: string): VolumeSnapshot => ({
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshot',
  metadata: childMetadata(owner, 'snapshot', name),
  spec: { volumeSnapshotClassName: className, source: { persistentVolumeClaimName: claim } },
});

/** The label by which a volume is found by its content; `undefined`: it has none. */
export const contentMarkOf = ({ metadata }: PersistentVolumeClaim): string | undefined =>
  metadata.labels?.[labels.content];

/** Copies the content mark of the volume to its snapshot, which may outlive it. */
export const describeContent = (
  snapshot: VolumeSnapshot,
  content: string | undefined,
  population: Population | undefined,
): VolumeSnapshot => {
  if (content === undefined || population === undefined) return snapshot;
  const { labels: own, annotations: texts } = snapshot.metadata;
  return {
    ...snapshot,
    metadata: {
      ...snapshot.metadata,
      labels: { ...own, ...contentLabel(content) },
      annotations: { ...texts, [annotations.populated]: JSON.stringify(population) },
    },
  };
};

// A claim that is restored from a snapshot.

/** `bytes`: at least; no driver restores into less than the restore size. */
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
